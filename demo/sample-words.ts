// The words of the sample catalogue: invented syllables for names, and the generic words of any market
// (dosage forms, packages, legal forms, places). Turkish in lower case; spelling comes later.

/** Returns the items of a text, which are separated by bars. */
function list(text: string): string[] {
  return text.trim().split(/\s*\|\s*/);
}

/** Open syllables that differ even without accents and dots, so that names differ in any spelling. */
export const SYLLABLES =
  `ba be bı bo ca ce ci çu da de di dö fa fe fi fu ga ge gı go ka ke ki kü la le li lo ma me mı mu
   na ne ni nö pa pe pi po ra re ri ru sa se şi so ta te tı tü va ve vi vo ya ye yi yu za ze zi zö`.split(
    /\s+/,
  );

// Every ending starts with two consonants, and no syllable does, so no two combinations spell the same name. Trade names hardly
// use these pairs.
export const DRUG_ENDINGS = list(
  'lv | rv | zm | rn | lm | vr | mz | nv | zd | rz | nz | vl | mr | zn | vn | lz',
).flatMap((pair) =>
  list('an | ek | im | om | ar | ır | ex | ix | al | ol | um | us | at | et | ün | ium').map(
    (end) => pair + end,
  ),
);
export const COMPANY_ENDINGS = list(`
  rvad | lvok | nzet | rmesa | zdar | lnova | mrek | vlan | rnek | zmira | ntova | lgar | rşan |
  ngül | zger | lday`);

/** Suffixes of drugs with several strengths or release forms. */
export const NAME_SUFFIXES = list(`
  fort | plus | sr | xr | mr | retard | rapid | akut | duo | kombi | pediatrik | D3 | B12`);

/** A dosage form: strengths, name, packages, and market share. */
export interface DrugForm {
  name: string;
  strengths: readonly string[];
  packages: readonly string[];
  weight: number;
}

const SOLID = list(`
  2,5 mg | 5 mg | 10 mg | 20 mg | 25 mg | 40 mg | 50 mg | 75 mg | 100 mg | 150 mg | 200 mg |
  300 mg | 500 mg | 1000 mg`);
const COMBINED = list(`
  5 mg/160 mg | 10 mg/160 mg | 10 mg/20 mg | 80 mg/12,5 mg | 160 mg/25 mg | 300 mg/12,5 mg |
  50 mg/850 mg | 50 mg/1000 mg`);
const LIQUID = list(`
  100 mg/5 ml | 125 mg/5 ml | 200 mg/5 ml | 250 mg/5 ml | 2 mg/5 ml | 7,5 mg/5 ml | %0,2 | %2`);
const INJECTED = list(`
  4 mg/2 ml | 50 mg/2 ml | 300 mg/2 ml | 100 mg/4 ml | 1 mg/ml | 10 mg/ml | 100 IU/ml |
  5000 IU/0,5 ml | 150 mcg/0,3 ml`);
const POWDER = list('250 mg | 500 mg | 1 g | 2 g | 50 mg | 1.000.000 IU | 40 mg');
const SKIN = list('%0,05 | %0,1 | %1 | %2 | %5 | 10 mg/g | 1 mg/g');
const EYE = list('%0,1 | %0,3 | %0,5 | 1 mg/ml | 5 mg/ml | 0,03 mg/ml | %1');
const AIR = list('50 mcg | 100 mcg | 200 mcg | 6 mcg/100 mcg | 12 mcg/400 mcg | 25 mcg/250 mcg');

const TABLETS = list('10 adet | 14 adet | 20 adet | 28 adet | 30 adet | 56 adet | 84 adet | 100 adet');
const AMPOULES = list('1 adet | 2 adet | 5 ampul | 6 adet | 10 ampul | 100 ampul');
const VIALS = ['1 flakon', '5 flakon', '10 flakon'];
const BOTTLES = ['60 ml', '100 ml', '120 ml', '150 ml', '200 ml'];
const TUBES = ['15 g', '20 g', '30 g', '50 g'];

export const DRUG_FORMS: readonly DrugForm[] = [
  { weight: 22, name: 'film kaplı tablet', strengths: SOLID, packages: TABLETS },
  { weight: 9, name: 'film kaplı tablet', strengths: COMBINED, packages: TABLETS },
  { weight: 17, name: 'tablet', strengths: SOLID, packages: TABLETS },
  { weight: 7, name: 'kapsül', strengths: SOLID, packages: TABLETS },
  { weight: 3, name: 'sert kapsül', strengths: SOLID, packages: TABLETS },
  { weight: 2, name: 'yumuşak kapsül', strengths: SOLID, packages: TABLETS },
  { weight: 2, name: 'enterik kaplı tablet', strengths: SOLID, packages: TABLETS },
  { weight: 2, name: 'uzatılmış salımlı tablet', strengths: SOLID, packages: TABLETS },
  { weight: 2, name: 'efervesan tablet', strengths: SOLID, packages: TABLETS },
  { weight: 2, name: 'ağızda dağılan tablet', strengths: SOLID, packages: TABLETS },
  { weight: 1, name: 'çiğneme tableti', strengths: SOLID, packages: TABLETS },
  {
    weight: 1,
    name: 'oral çözelti için granül içeren saşe',
    strengths: SOLID,
    packages: ['10 saşe', '20 saşe', '30 saşe'],
  },
  { weight: 4, name: 'şurup', strengths: LIQUID, packages: BOTTLES },
  { weight: 3, name: 'oral süspansiyon', strengths: LIQUID, packages: BOTTLES },
  { weight: 2, name: 'oral süspansiyon için kuru toz', strengths: LIQUID, packages: BOTTLES },
  { weight: 7, name: 'enjeksiyonluk çözelti', strengths: INJECTED, packages: AMPOULES },
  { weight: 3, name: 'IM/IV enjeksiyonluk çözelti', strengths: INJECTED, packages: AMPOULES },
  {
    weight: 2,
    name: 'kullanıma hazır dolu enjektör',
    strengths: INJECTED,
    packages: ['1 enjektör', '2 enjektör', '6 enjektör', '10 enjektör'],
  },
  {
    weight: 3,
    name: 'enjeksiyonluk çözelti hazırlamak için liyofilize toz içeren flakon',
    strengths: POWDER,
    packages: VIALS,
  },
  { weight: 3, name: 'IV infüzyon için konsantre çözelti', strengths: INJECTED, packages: VIALS },
  { weight: 3, name: 'krem', strengths: SKIN, packages: TUBES },
  { weight: 2, name: 'merhem', strengths: SKIN, packages: TUBES },
  { weight: 1, name: 'jel', strengths: SKIN, packages: TUBES },
  { weight: 2, name: 'steril göz damlası, çözelti', strengths: EYE, packages: ['3 ml', '5 ml', '10 ml'] },
  { weight: 1, name: 'burun spreyi', strengths: AIR, packages: ['60 doz', '120 doz', '200 doz'] },
  {
    weight: 2,
    name: 'inhalasyon için ölçülü dozlu aerosol, süspansiyon',
    strengths: AIR,
    packages: ['60 doz', '120 doz', '200 doz'],
  },
];

/** Kinds of firms in this trade. */
export const FIRM_KINDS = list(`
  ilaç | ilaç | ilaç | farma | medikal | biyoteknoloji | sağlık ürünleri | kimya | laboratuvarları |
  ecza deposu`);
export const LEGAL_FORMS = list(`
  Sanayi ve Ticaret Anonim Şirketi | San. ve Tic. A.Ş. | Tic. Ltd. Şti. |
  Sanayi ve Ticaret Limited Şirketi | San. Tic. Ltd. Şti. | A.Ş.`);
export const STREETS = list(`
  gül | çınar | ıhlamur | atölye | fabrika | sanayi | istasyon | değirmen | papatya | köprü | üzüm |
  şelale`);

/** A city, one of its districts, and the city's telephone code. */
export const PLACES = [
  ['istanbul', 'ümraniye', '216'],
  ['istanbul', 'kadıköy', '216'],
  ['istanbul', 'şişli', '212'],
  ['istanbul', 'beşiktaş', '212'],
  ['istanbul', 'esenyurt', '212'],
  ['ankara', 'çankaya', '312'],
  ['ankara', 'sincan', '312'],
  ['izmir', 'bornova', '232'],
  ['izmir', 'çiğli', '232'],
  ['kocaeli', 'gebze', '262'],
  ['tekirdağ', 'çerkezköy', '282'],
  ['bursa', 'nilüfer', '224'],
  ['eskişehir', 'odunpazarı', '222'],
  ['ısparta', 'eğirdir', '246'],
] as const;
