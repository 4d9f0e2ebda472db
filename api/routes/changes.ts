// GET /{collection}/changes?since=N: the changes since version N by id; with `wait`, after the next publication.

import Boom from '@hapi/boom';
import type { Request, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import type { Version } from '../../shared/store/versions.ts';
import { withTimeout } from '../../shared/time.ts';
import { type KnownKeys, keyOf, unauthorized } from '../auth.ts';
import type { ClientRecord } from '../client-versions.ts';
import { respondWithinMs, type TracedResponse } from '../http.ts';
import { baseUrlOf } from '../proxy.ts';
import { changeParameters, maxWait, type PageRequest, pageOf, queryReader } from '../query.ts';
import type { ChangeRange, ReadModel } from '../read/read-model.ts';
import type { ReadTarget } from '../read/versions.ts';
import { listBody, sharedBody } from '../reply/body.ts';
import { changeElement, digestFields, listEnd, listStart, pageLinks, pageMeta } from '../reply/envelope.ts';
import {
  isFresh,
  notModified,
  type Reply,
  sendReply,
  type VersionedResponse,
  validatorsOf,
} from '../reply/reply.ts';

/** The parameters of a request, except the version at which the changes end. */
interface ChangesAsked extends PageRequest {
  /** The route's address in links. */
  readonly address: string;
  readonly since: number;
  /** `since` in links: the number, or the date and time as the request has it. */
  readonly given: string | number;
}

/** The options of the route. */
export interface ChangesOptions {
  readonly readModel: ReadModel;
  readonly apiKeys: KnownKeys;
  readonly baseUrl: string | undefined;
  readonly clientVersions: ClientRecord;
}

/** A response, and whether the client then has all changes. */
interface ChangesReply extends Reply {
  readonly isLast: boolean;
}

export function changesRoute(
  served: ServedCollection,
  { readModel, apiKeys, baseUrl, clientVersions }: ChangesOptions,
): ServerRoute {
  const { name } = served.collection;
  const readQuery = queryReader(changeParameters);
  const shared = new SharedWork<ChangesReply>();
  /** Computed once for identical requests at the same time: thousands follow a publication. */
  const make = (asked: ChangesAsked, target: ReadTarget): Promise<ChangesReply> => {
    const { address, since, given, page, perPage } = asked;
    const name = JSON.stringify([target.version.version, target.pin, address, since, given, page, perPage]);
    return shared.get(name, async () => {
      const found = await readModel.changes(target, spanOf(asked), () => false);
      if ('fresh' in found) throw new Error('changes() returned a cached response, but no client has one.');
      const { body, ...its } = replyOf(asked, found);
      const made = sharedBody(body());
      return { ...its, body: () => made };
    });
  };
  const isToWait = async (
    since: number,
    { wait, pin }: Readonly<Record<'wait' | 'pin', number | undefined>>,
  ) => {
    // With `version`, waiting is useless: that version is already published.
    if (wait === undefined || pin !== undefined) return false;
    // If Redis is unavailable, the read fails at once.
    return apiKeys.isConfirmed && (await readModel.isLatest(served, since));
  };
  /** Waits for a publication. @returns whether the client is still connected */
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
    const send = (reply: ChangesReply) => {
      if (reply.isLast) clientVersions.serving(request, name, reply.version.version);
      return sendReply(request, h, reply);
    };
    if (!isFreshAt(target.version)) return send(await make(asked, target));
    // A client that already has the response needs no join.
    const found = await readModel.changes(target, spanOf(asked), isFreshAt);
    if (!('fresh' in found)) return send(replyOf(asked, found));
    if (asked.since === found.fresh.version) clientVersions.serving(request, name, asked.since);
    return notModified(request, h, headOf(asked, found.fresh));
  };
  return {
    method: 'GET',
    path: `/${name}/changes`,
    // hapi's timeout includes the wait.
    options: { timeout: { server: maxWait * 1_000 + 2 * respondWithinMs } },
    handler: async (request, h) => {
      const { values, given } = readQuery(request.raw.req.url ?? '');
      const { wait, version: pin } = values;
      const since =
        typeof values.since === 'number'
          ? values.since
          : await withTimeout(readModel.versionAt(served, values.since), respondWithinMs);
      if (pin !== undefined && since > pin)
        throw Boom.badRequest(`since=${since} is later than version=${pin}; the changes end at "version".`);
      const address = addressOf(request, name, baseUrl);
      const asked = {
        address,
        since,
        given: typeof values.since === 'number' ? since : (given['since'] as string),
        ...pageOf(values),
      };
      if (await isToWait(since, { wait, pin })) {
        if (!(await waitFor(request, since, Number(wait)))) return h.abandon;
        if (!keyOf(request, apiKeys)) throw unauthorized(); // The key may have been revoked meanwhile.
      }
      return withTimeout(respond(request, h, asked, pin), respondWithinMs);
    },
  };
}

function addressOf(request: Request, name: string, baseUrl: string | undefined): string {
  return `${baseUrlOf(request, baseUrl)}/${name}/changes`;
}

function spanOf({ since, page, perPage }: ChangesAsked) {
  return { since, from: (page - 1) * perPage, count: perPage };
}

function validatorsAt(version: Version, { address, since, given, page, perPage }: ChangesAsked) {
  return validatorsOf(version, ['changes', address, since, given, version.version, page, perPage]);
}

function headOf(asked: ChangesAsked, version: Version): VersionedResponse {
  return { version, validators: validatorsAt(version, asked), fields: digestFields(version) };
}

function replyOf(asked: ChangesAsked, { version, totalCount, changes }: ChangeRange): ChangesReply {
  const { address, given } = asked;
  const meta = pageMeta(totalCount, asked);
  // Links carry the version at which this response ends, so all pages belong to one list and do not wait.
  const links = pageLinks(address, meta, { since: given, version: version.version });
  return {
    ...headOf(asked, version),
    isLast: meta.currentPage === Math.max(1, meta.pageCount),
    body: () => listBody(listStart, { records: changes.map(changeElement) }, listEnd(links, meta)),
  };
}

/** Shares work in progress between callers; finished results are not kept. */
export class SharedWork<Result> {
  readonly #underWay = new Map<string, Promise<Result>>();

  /** Returns the result of the work with this name, and starts it unless it is in progress. */
  get(name: string, begin: () => Promise<Result>): Promise<Result> {
    const underWay = this.#underWay.get(name);
    if (underWay) return underWay;
    const work = begin().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, work);
    return work;
  }
}
