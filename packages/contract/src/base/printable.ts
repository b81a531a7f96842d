/**
 * Terminal escapes as a whole: CSI, then the strings (OSC, DCS, SOS, PM, APC) with their text, then the short ones. No
 * part runs over another escape, so that a text of nothing but openings is read once.
 */
const escapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g;

/** C0 but for tab and line feed, DEL, C1, line separators and the marks that turn the direction of text around. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text that nobody vouches for, made harmless for a terminal: escapes and controls are gone, lines and tabs stay. */
export function printable(text: string): string {
  return text.replace(escapes, "").replace(controls, "");
}
