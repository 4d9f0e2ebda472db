// The candidate of a collection: why it waits, what it would change, and the commands that publish or discard it.

import { html } from 'hono/html';
import { comparedNumber, expiryOf } from '../../../shared/candidates.ts';
import { candidateCommands } from '../../../shared/collection-status.ts';
import { byText } from '../../../shared/import-history.ts';
import type { CandidateTarget } from '../../read/versions.ts';
import {
  commands,
  facts,
  type Html,
  none,
  pageLink,
  sentenceLength,
  shownCount,
  shownText,
  shownTime,
} from './html.ts';
import { definePage, type PageContext } from './page.ts';
import { differenceParameters, differences } from './versions.ts';

export const candidatePage = definePage({
  label: 'Candidate',
  collections: 'served',
  parameters: differenceParameters,
  async render(context) {
    const { served, sources, query } = context;
    const { name } = served.collection;
    const found = await sources.readModel.candidate(served);
    const title = `Candidate of ${name}`;
    if (!found)
      return {
        ...{ title, collection: name },
        body: html`<p>No candidate of ${name} waits. An import that a check refuses leaves one, and every import with <code>PUBLISH=manual</code>.</p>`,
      };
    const { candidate, target, isOutdated } = found;
    const { version, entry } = candidate;
    const compared = comparedNumber(candidate);
    const body = html`${facts([
      ['Candidate', version.version],
      ['State', stateOf(found)],
      ['Reason', entry.reason === null ? none : shownText(entry.reason, sentenceLength)],
      ['Import ended', shownTime(entry.endedAt)],
      ['By', entry.by ? shownText(byText(entry).slice('by '.length), sentenceLength) : none],
      ['Kept until', shownTime(expiryOf(candidate))],
      ['Records', shownCount(target.version.totalCount)],
      ['Compared with', compared ?? 'none live'],
      [
        'Rejected records',
        html`<a href="${pageLink('rejects', { collection: served.source.name })}">${shownCount(entry.rejected)}</a>`,
      ],
    ])}
${isOutdated ? '' : html`<section aria-labelledby="next"><h2 id="next">Next steps</h2>${commands(candidateCommands(served.source.name, { version: version.version, reason: entry.reason }))}</section>`}
${await changesOf(context, found, query.values)}`;
    return { title, collection: name, body };
  },
});

function stateOf({ candidate: { entry }, isOutdated }: CandidateTarget): Html {
  if (isOutdated)
    return html`<span class="badge otherwise">outdated</span> Another version went live; its data is deleted.`;
  return entry.outcome === 'refused'
    ? html`<span class="badge refused">refused</span> by a check; an operator may publish it.`
    : html`<span class="badge unchanged">waiting</span> It passed the checks; <code>PUBLISH</code> is <code>manual</code>.`;
}

/** Returns what the candidate would change, if it was compared and can still be published. */
async function changesOf(
  context: PageContext,
  { live, target, isOutdated }: CandidateTarget,
  shown: Parameters<typeof differences>[2]['shown'],
): Promise<Html | ''> {
  const { name: collection } = context.served.collection;
  if (isOutdated) return '';
  if (!live || !target.changes)
    return html`<p>It cannot be compared: ${live ? 'the live version is damaged' : 'no version is live'}.</p>`;
  const linkTo = (it: object) => pageLink('candidate', { collection, ...it });
  return html`<h2>Differences</h2>
${await differences(context, { from: live, to: target }, { shown, shownVersion: null, linkTo })}`;
}
