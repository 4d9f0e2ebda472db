// GET /{collection}/changes?since=N: what changed since version N, by id; with wait=, as soon as something is published.

import Boom from '@hapi/boom';
import type { Request, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import type { Version } from '../../shared/store/versions.ts';
import { withTimeout } from '../../shared/time.ts';
import { type KnownKeys, keyOf, unauthorized } from '../auth.ts';
import { answerWithinMs, type TracedResponse } from '../http.ts';
import { baseUrlOf } from '../proxy.ts';
import { changeParameters, maxWait, type PageRequest, pageOf, queryReader } from '../query.ts';
import type { ChangeRange, ReadModel } from '../read/read-model.ts';
import type { ReadTarget } from '../read/versions.ts';
import { listBody, sharedBody } from '../reply/body.ts';
import { changeElement, digestFields, listEnd, listStart, pageLinks, pageMeta } from '../reply/envelope.ts';
import { type Answer, answer, isFresh, notModified, type Reply, validatorsOf } from '../reply/reply.ts';

/** What is asked for, but for the version that it ends at. */
interface ChangesAsked extends PageRequest {
  /** Of the route, as links name it. */
  readonly address: string;
  readonly since: number;
}

/** What the route answers by. */
export interface ChangesOptions {
  readonly readModel: ReadModel;
  readonly apiKeys: KnownKeys;
  readonly baseUrl: string | undefined;
}

export function changesRoute(
  served: ServedCollection,
  { readModel, apiKeys, baseUrl }: ChangesOptions,
): ServerRoute {
  const { name } = served.collection;
  const readQuery = queryReader(changeParameters);
  const shared = new SharedWork<Reply>();
  /** Made once for all who ask for the same at once: a publication has thousands ask. */
  const make = (asked: ChangesAsked, target: ReadTarget): Promise<Reply> => {
    const { address, since, page, perPage } = asked;
    const name = JSON.stringify([target.version.version, target.pin, address, since, page, perPage]);
    return shared.get(name, async () => {
      const found = await readModel.changes(target, spanOf(asked), () => false);
      if ('fresh' in found) throw new Error('No client was said to hold the answer.');
      const { body, ...its } = answerOf(asked, found);
      const made = sharedBody(body());
      return { ...its, body: () => made };
    });
  };
  const isToWait = async (
    since: number,
    { wait, pin }: Readonly<Record<'wait' | 'pin', number | undefined>>,
  ) => {
    // Nothing can be published up to a version that is already.
    if (wait === undefined || pin !== undefined) return false;
    // If Redis is unavailable, the read says so at once.
    return apiKeys.isConfirmed && (await readModel.isLatest(served, since));
  };
  /** Waits for a publication. @returns whether the client still waits for the response */
  const waitFor = async ({ raw }: Request, since: number, seconds: number): Promise<boolean> => {
    const res = raw.res as TracedResponse;
    const from = performance.now();
    const end = await readModel.waits.until({
      source: served.source,
      since,
      ms: seconds * 1_000,
      onWaiting: (leave) => res.once('close', leave),
    });
    res.waitedMs = performance.now() - from;
    res.once('finish', () => readModel.waits.readOnLater(res.req.socket));
    return end !== 'left';
  };
  const respond = async (
    request: Request,
    h: ResponseToolkit,
    asked: ChangesAsked,
    pin: number | undefined,
  ) => {
    const target = await readModel.target(served, pin);
    const isFreshAt = (version: Version) => isFresh(request, validatorsAt(version, asked));
    if (!isFreshAt(target.version)) return answer(request, h, await make(asked, target));
    // Nothing is joined for a client that has it already.
    const found = await readModel.changes(target, spanOf(asked), isFreshAt);
    if ('fresh' in found) return notModified(request, h, headOf(asked, found.fresh));
    return answer(request, h, answerOf(asked, found));
  };
  return {
    method: 'GET',
    path: `/${name}/changes`,
    // hapi counts the time of the wait, too.
    options: { timeout: { server: maxWait * 1_000 + 2 * answerWithinMs } },
    handler: async (request, h) => {
      const { values } = readQuery(request.raw.req.url ?? '');
      const { since, wait, version: pin } = values;
      if (pin !== undefined && since > pin)
        throw Boom.badRequest(
          `The version since=${since} is later than version=${pin}, where the changes are to end.`,
        );
      const asked = { address: addressOf(request, name, baseUrl), since, ...pageOf(values) };
      if (await isToWait(since, { wait, pin })) {
        if (!(await waitFor(request, since, Number(wait)))) return h.abandon;
        if (!keyOf(request, apiKeys)) throw unauthorized(); // It may be revoked by now.
      }
      return withTimeout(respond(request, h, asked, pin), answerWithinMs);
    },
  };
}

function addressOf(request: Request, name: string, baseUrl: string | undefined): string {
  return `${baseUrlOf(request, baseUrl)}/${name}/changes`;
}

function spanOf({ since, page, perPage }: ChangesAsked) {
  return { since, from: (page - 1) * perPage, count: perPage };
}

function validatorsAt(version: Version, { address, since, page, perPage }: ChangesAsked) {
  return validatorsOf(version, ['changes', address, since, version.version, page, perPage]);
}

function headOf(asked: ChangesAsked, version: Version): Answer {
  return { version, validators: validatorsAt(version, asked), fields: digestFields(version) };
}

function answerOf(asked: ChangesAsked, { version, totalCount, changes }: ChangeRange): Reply {
  const { address, since } = asked;
  const meta = pageMeta(totalCount, asked);
  // Links end at the version this answer ends at, so that a walk along them sees one list, and waits for nothing.
  const links = pageLinks(address, meta, { since, version: version.version });
  return {
    ...headOf(asked, version),
    body: () => listBody(listStart, { records: changes.map(changeElement) }, listEnd(links, meta)),
  };
}

/** Shares work that is under way; nothing is remembered of what has ended. */
export class SharedWork<Result> {
  readonly #underWay = new Map<string, Promise<Result>>();

  /** What comes of the work of this name, which is begun unless it is under way. */
  get(name: string, begin: () => Promise<Result>): Promise<Result> {
    const underWay = this.#underWay.get(name);
    if (underWay) return underWay;
    const work = begin().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, work);
    return work;
  }
}
