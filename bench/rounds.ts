// In: pairs of things to measure. Out: their samples, taken in rounds; the two of a pair right after each other, so that
// what else the machine does meets both, and each of them first in every other round.

/** Two things that are compared. */
export interface Contest<Sample> {
  readonly title: string;
  subject(): Promise<Sample>;
  against(): Promise<Sample>;
}

/** The samples of one round. */
export interface PairedSample<Sample> {
  readonly subject: Sample;
  readonly against: Sample;
}

/** The samples of all rounds; or of those before one of the two failed, and how it did. */
export interface ContestResult<Sample> {
  readonly samples: readonly PairedSample<Sample>[];
  readonly failure: string | null;
}

/** Measures all pairs in each round, every round in another order. */
export async function inRounds<Sample>(
  contests: readonly Contest<Sample>[],
  rounds: number,
  onContest: (title: string, round: number) => void,
): Promise<ContestResult<Sample>[]> {
  const results = contests.map(() => ({
    samples: [] as PairedSample<Sample>[],
    failure: null as string | null,
  }));
  for (let round = 0; round < rounds; round++) {
    for (const index of orderOf(contests.length, round)) {
      const contest = contests[index] as Contest<Sample>;
      const result = results[index] as (typeof results)[number];
      if (result.failure !== null) continue;
      onContest(contest.title, round);
      try {
        result.samples.push(await measurePair(contest, (round + index) % 2 === 1));
      } catch (error) {
        result.failure = (error as Error).message;
      }
    }
  }
  return results;
}

/** The order of a round: begun elsewhere in each, and backwards in every other one. */
export function orderOf(count: number, round: number): number[] {
  const start = (round * 7) % Math.max(count, 1);
  const order = Array.from({ length: count }, (_, i) => (start + i) % count);
  return round % 2 === 0 ? order : order.reverse();
}

async function measurePair<Sample>(
  contest: Contest<Sample>,
  isReversed: boolean,
): Promise<PairedSample<Sample>> {
  if (isReversed) {
    const against = await contest.against();
    return { subject: await contest.subject(), against };
  }
  const subject = await contest.subject();
  return { subject, against: await contest.against() };
}
