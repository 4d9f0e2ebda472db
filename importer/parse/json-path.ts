// JSON paths (RFC 9535), by which reasons name a place in a record.

/** The path of a place from the outside in, such as `$.barcodes[0].barcode`. */
export function jsonPath(steps: readonly (string | number)[]): string {
  return `$${steps.map((step) => (typeof step === 'number' ? `[${step}]` : memberStep(step))).join('')}`;
}

/** The step to a member: `.name`, or `["the name"]` where it needs quotes. */
export function memberStep(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
