// In: a rejected record as it came, and the JSON path of what was wrong. Out: where in the text that is.

import { findNodeAtLocation, parseTree } from 'jsonc-parser';

/** A place in a text: from an index up to another one. */
export interface Place {
  readonly from: number;
  readonly until: number;
}

/** A step of a path: `.name`, `[3]`, or `["the name"]`. */
const step = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** The text may be cut off, and be no JSON at all. @returns `null` where the path leads to nothing that is there */
export function placeOf(raw: string, path: string): Place | null {
  const steps = stepsOf(path);
  const root = steps && parseTree(raw, [], { disallowComments: true });
  const node = root && steps && findNodeAtLocation(root, steps);
  return node ? { from: node.offset, until: node.offset + node.length } : null;
}

/** The steps of a JSON path; `null` where it is cut off, or says nothing but "all of it". */
function stepsOf(path: string): (string | number)[] | null {
  const steps: (string | number)[] = [];
  step.lastIndex = 1;
  while (step.lastIndex < path.length) {
    const found = step.exec(path);
    if (!found) return null;
    const [, name, index, quoted] = found;
    if (index !== undefined) steps.push(Number(index));
    else steps.push(name ?? (JSON.parse(quoted as string) as string));
  }
  return steps.length === 0 ? null : steps;
}
