// In: where text goes. Out: a function that colours it there, or leaves it as it is.

/** A stream; one that leads to a terminal says so, and whether there are colours: Node knows NO_COLOR and TERM. */
export interface Terminal {
  readonly isTTY?: boolean;
  hasColors?(): boolean;
}

/** Select Graphic Rendition (ECMA-48, section 8.3.117): what begins each, and what ends it. */
const renditions = { red: [31, 39], bold: [1, 22] } as const;

/** Colours text. */
export type Paint = (rendition: keyof typeof renditions, text: string) => string;

/** Colours text for a stream: on a terminal that has colours, and nowhere else. */
export function paintFor(stream: Terminal): Paint {
  if (!stream.isTTY || !stream.hasColors?.()) return (_rendition, text) => text;
  return (rendition, text) => {
    const [begin, end] = renditions[rendition];
    return `\x1b[${begin}m${text}\x1b[${end}m`;
  };
}
