// Folding: what makes two names one to a search. The same for names as they are stored and as they are asked for.

/** What folds to its lower case: ASCII without runs of white space, or any at the edges. */
const isPlain = /^(?:[!-~]+(?: [!-~]+)*)?$/;

const marks = /\p{M}+/gu;
const iLetters = /[Iı]/g;
const whiteSpace = /[\s\u0085]+/g;

/**
 * Folds a text: canonical decomposition without combining marks (`ş` is `s`, `é` is `e`), lower case, one `i` of
 * `I ı İ i`, one `µ` of the micro sign and the Greek letter, each run of white space one space and none at the edges.
 * Letters that do not decompose stay (`ß æ ø ł ™`). See docs/CONSUMERS.md, "Search".
 * Lower case is taken letter by letter, so that the fold of a prefix is a prefix of the fold.
 * @example fold(' ASPİRİN\n Plus ') // 'aspirin plus'
 */
export function fold(text: string): string {
  if (isPlain.test(text)) return text.toLowerCase();
  // Without marks first: those of a long run would be brought into their order, in time that grows with its square.
  const letters = text.replace(marks, '').normalize('NFD').replace(marks, '');
  return lower(letters.replace(iLetters, 'i').replaceAll('µ', 'μ')).replace(whiteSpace, ' ').trim();
}

/** Without context: a sigma at the end of a word is the letter that it is within one. */
function lower(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}
