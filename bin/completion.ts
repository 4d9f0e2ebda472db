// In: what can be typed after medref. Out: a script for a shell that completes it. The scripts know all of it themselves:
// no process is started as somebody types.

/** A command, as one types it. */
export interface CommandOutline {
  /** `keys create`; `''` of medref itself. */
  readonly path: string;
  /** What may follow: commands, or what an argument may be. */
  readonly words: readonly Choice[];
  readonly options: readonly (Choice & { readonly takesValue: boolean })[];
}

/** A word, and what it means. */
export interface Choice {
  readonly word: string;
  readonly what: string;
}

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** A shell that there is a script for. */
export type Shell = keyof typeof scripts;

/** Their names. */
export const shells = Object.keys(scripts) as Shell[];

/** The script that completes these commands in a shell. */
export function completionScript(shell: Shell, outlines: readonly CommandOutline[]): string {
  return scripts[shell](outlines);
}

/** Options whose next word is a value, of which nothing is known. */
function valueOptions(outlines: readonly CommandOutline[]): string[] {
  const all = outlines.flatMap(({ options }) => options).filter(({ takesValue }) => takesValue);
  return [...new Set(all.map(({ word }) => word))];
}

/** A text that a shell takes as it is; fish has other escapes within quotes than bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function paths(outlines: readonly CommandOutline[]): string[] {
  return outlines.map(({ path }) => path).filter((path) => path !== '');
}

const wordsOf = (choices: readonly Choice[]) => choices.map(({ word }) => word).join(' ');

function bashScript(outlines: readonly CommandOutline[]): string {
  const cases = outlines.map(
    ({ path, words, options }) =>
      `    ${quoted(path)}) words=${quoted(wordsOf(words))} options=${quoted(wordsOf(options))} ;;`,
  );
  return `# bash completion for medref
_medref() {
  local typed="\${COMP_WORDS[COMP_CWORD]}" path='' words='' options='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${path:+$path }\${COMP_WORDS[at]}" in
      ${paths(outlines).map(quoted).join(' | ')}) path="\${path:+$path }\${COMP_WORDS[at]}" ;;
    esac
  done
  COMPREPLY=()
  case "\${COMP_WORDS[COMP_CWORD - 1]}" in
    ${valueOptions(outlines).map(quoted).join(' | ')}) return ;;
  esac
  case "$path" in
${cases.join('\n')}
  esac
  if [[ $typed == -* || -z $words ]]; then words="$options"; fi
  COMPREPLY=($(compgen -W "$words" -- "$typed"))
}
complete -F _medref medref
`;
}

function zshScript(outlines: readonly CommandOutline[]): string {
  // A colon ends a word; the ones after it are part of what the word means.
  const array = (choices: readonly Choice[]) =>
    `(${choices.map(({ word, what }) => quoted(`${word}:${what}`)).join(' ')})`;
  const cases = outlines.map(
    ({ path, words, options }) =>
      `    ${quoted(path)}) choices=${array(words)}; options=${array(options)} ;;`,
  );
  return `#compdef medref
# zsh completion for medref
_medref() {
  local typed="$words[CURRENT]" line='' at
  local -a choices options
  for ((at = 2; at < CURRENT; at++)); do
    case "\${line:+$line }$words[at]" in
      (${paths(outlines).map(quoted).join(' | ')}) line="\${line:+$line }$words[at]" ;;
    esac
  done
  case "$words[CURRENT-1]" in
    (${valueOptions(outlines).map(quoted).join(' | ')}) return 1 ;;
  esac
  case "$line" in
${cases.join('\n')}
  esac
  if [[ $typed == -* ]] || (( ! $#choices )); then
    _describe -o option options
  else
    _describe word choices
  fi
}
if [[ $funcstack[1] == _medref ]]; then _medref "$@"; else compdef _medref medref; fi
`;
}

function fishScript(outlines: readonly CommandOutline[]): string {
  const lines = outlines.flatMap(({ path, words, options }) => {
    const at = `complete -c medref -n ${quoted(`__medref_at "${path}"`)}`;
    return [
      ...words.map(({ word, what }) => `${at} -a ${fishQuoted(word)} -d ${fishQuoted(what)}`),
      ...options.map(({ word, what, takesValue }) => {
        const value = takesValue ? ' -x' : '';
        return `${at} -l ${word.replace(/^--/, '')}${value} -d ${fishQuoted(what)}`;
      }),
    ];
  });
  return `# fish completion for medref
function __medref_at
    set -l line ''
    for word in (commandline -opc)[2..-1]
        set -l longer (string trim -- "$line $word")
        switch "$longer"
            case ${paths(outlines).map(fishQuoted).join(' ')}
                set line "$longer"
        end
    end
    test "$line" = "$argv[1]"
end
complete -c medref -f
${lines.join('\n')}
`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
