/** Classic BPF, as seccomp takes it. */
export interface Instruction {
  readonly code: number;
  readonly whenTrue: number;
  readonly whenFalse: number;
  readonly operand: number;
}

/** An instruction, a label, or a conditional jump to a label further down. */
export type Line =
  | Instruction
  | { readonly label: string }
  | { readonly jump: number; readonly operand: number; readonly to: string };

const instruction = (code: number, operand: number, whenTrue = 0, whenFalse = 0): Instruction => ({
  code,
  whenTrue,
  whenFalse,
  operand,
});
export const load = (offset: number) => instruction(0x20, offset);
export const keepBits = (bits: number) => instruction(0x54, bits);
export const returns = (action: number) => instruction(0x06, action);
/** Runs the next `length` instructions when equal, else skips them. */
export const whenEqual = (value: number, length: number) => instruction(0x15, value, 0, length);
export const whenGreater = (value: number, length: number) => instruction(0x25, value, 0, length);
export const label = (name: string): Line => ({ label: name });
export const equal = (value: number, to: string): Line => ({ jump: 0x15, operand: value, to });
export const greater = (value: number, to: string): Line => ({ jump: 0x25, operand: value, to });
export const anySet = (bits: number, to: string): Line => ({ jump: 0x45, operand: bits, to });

/** Replaces labels by distances. */
export function assemble(lines: readonly Line[]): Instruction[] {
  const places = new Map<string, number>();
  const body = lines.filter((line, index) => {
    if (!("label" in line)) return true;
    places.set(line.label, index - places.size);
    return false;
  }) as Exclude<Line, { label: string }>[];
  return body.map((line, index) => {
    if (!("jump" in line)) return line;
    const distance = (places.get(line.to) ?? Number.NaN) - index - 1;
    if (!(distance >= 0 && distance < 256)) throw new RangeError(`No label ${line.to} within reach.`);
    return instruction(line.jump, line.operand, distance, 0);
  });
}

export const allow = 0x7fff0000;
export const killProcess = 0x80000000;
const errnoAction = 0x00050000;
export const errno = {
  none: errnoAction,
  EPERM: errnoAction | 1,
  ENOSYS: errnoAction | 38,
  EPROTONOSUPPORT: errnoAction | 93,
  EOPNOTSUPP: errnoAction | 95,
  EAFNOSUPPORT: errnoAction | 97,
} as const;

/** Offsets in struct seccomp_data. The kernel uses 32 bits of the arguments inspected here and ignores the upper half. */
export const dataNumber = 0;
export const dataArch = 4;
export const argument = (index: number): number => 16 + 8 * index;

/** The program as the kernel takes it. */
export function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  program.forEach(({ code, whenTrue, whenFalse, operand }, index) => {
    bytes.setUint16(index * 8, code, true);
    bytes.setUint8(index * 8 + 2, whenTrue);
    bytes.setUint8(index * 8 + 3, whenFalse);
    bytes.setUint32(index * 8 + 4, operand >>> 0, true);
  });
  return new Uint8Array(bytes.buffer);
}
