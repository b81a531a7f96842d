import { describe, expect, test } from "vitest";
import { type Arch, type SeccompProfile, seccompFilter } from "./seccomp.ts";

const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const allowed = "allow";

/** Runs the filter as the kernel would: a BPF machine with the instructions that the kernel's checker lets pass. */
function decide(filter: Uint8Array, call: { arch: number; nr: number; args?: readonly number[] }): string {
  const code = new DataView(filter.buffer);
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, call.nr, true);
  data.setUint32(4, call.arch, true);
  (call.args ?? []).forEach((value, index) => {
    data.setBigUint64(16 + 8 * index, BigInt.asUintN(64, BigInt(value)), true);
  });
  let accumulator = 0;
  for (let pc = 0; pc < filter.length / 8; pc++) {
    const operand = code.getUint32(pc * 8 + 4, true);
    const jump = (taken: boolean) => {
      pc += code.getUint8(pc * 8 + (taken ? 2 : 3));
    };
    switch (code.getUint16(pc * 8, true)) {
      case 0x20:
        accumulator = data.getUint32(operand, true);
        break;
      case 0x54:
        accumulator = (accumulator & operand) >>> 0;
        break;
      case 0x15:
        jump(accumulator === operand);
        break;
      case 0x25:
        jump(accumulator > operand);
        break;
      case 0x45:
        jump((accumulator & operand) !== 0);
        break;
      case 0x06:
        return answer(operand);
      default:
        throw new Error(`unknown instruction at ${pc}`);
    }
  }
  throw new Error("the filter has no end");
}

function answer(action: number): string {
  if (action === 0x7fff0000) return allowed;
  if (action === 0x80000000) return "kill";
  const names: Record<number, string> = { 0: "0", 1: "EPERM", 38: "ENOSYS", 93: "EPROTONOSUPPORT", 97: "EAFNOSUPPORT" };
  return names[action & 0xffff] ?? `errno ${action & 0xffff}`;
}

const numbers = {
  x64: {
    read: 0,
    openat: 257,
    execve: 59,
    ptrace: 101,
    mount: 165,
    bpf: 321,
    keyctl: 250,
    io_uring_setup: 425,
    setns: 308,
  },
  arm64: {
    read: 63,
    openat: 56,
    execve: 221,
    ptrace: 117,
    mount: 40,
    bpf: 280,
    keyctl: 219,
    io_uring_setup: 425,
    setns: 268,
  },
} as const;
const inspected = {
  x64: {
    socket: 41,
    socketpair: 53,
    clone: 56,
    unshare: 272,
    ioctl: 16,
    personality: 135,
    prctl: 157,
    setrlimit: 160,
    prlimit64: 302,
    fchownat: 260,
    setgroups: 116,
  },
  arm64: {
    socket: 198,
    socketpair: 199,
    clone: 220,
    unshare: 97,
    ioctl: 29,
    personality: 92,
    prctl: 167,
    setrlimit: 164,
    prlimit64: 261,
    fchownat: 54,
    setgroups: 159,
  },
} as const;

describe.each(["x64", "arm64"] as const)("on %s", (arch: Arch) => {
  const ask = (nr: number, args: readonly number[] = [], profile: SeccompProfile = "user") =>
    decide(seccompFilter(profile, arch), { arch: auditArch[arch], nr, args });
  const nr = inspected[arch];

  test.each(["read", "openat", "execve", "ptrace"] as const)("%s is allowed", (name) => {
    expect(ask(numbers[arch][name])).toBe(allowed);
  });

  test.each(["mount", "bpf", "keyctl", "io_uring_setup", "setns"] as const)("%s is refused", (name) => {
    expect(ask(numbers[arch][name])).toBe("EPERM");
    expect(ask(numbers[arch][name], [], "root")).toBe("EPERM");
  });

  test.each([
    ["a unix socket", [1, 1, 0], allowed],
    ["TCP", [2, 1, 6], allowed],
    ["TCP without blocking", [10, 1 | 0o4000, 0], allowed],
    ["UDP", [2, 2, 17], allowed],
    ["routes", [16, 3, 0], allowed],
    ["netlink of another kind", [16, 3, 12], "EPROTONOSUPPORT"],
    ["a raw socket", [2, 3, 1], "EPROTONOSUPPORT"],
    ["MPTCP", [2, 1, 262], "EPROTONOSUPPORT"],
    ["SCTP", [2, 5, 132], "EPROTONOSUPPORT"],
    ["UDP-Lite", [2, 2, 136], "EPROTONOSUPPORT"],
    ["vsock", [40, 1, 0], "EAFNOSUPPORT"],
    ["a packet socket", [17, 3, 0], "EAFNOSUPPORT"],
    ["the kernel's crypto", [38, 5, 0], "EAFNOSUPPORT"],
    ["vsock behind upper bits", [2 ** 32 + 40, 1, 0], "EAFNOSUPPORT"],
  ])("socket: %s", (_, args, expected) => {
    expect(ask(nr.socket, args)).toBe(expected);
  });

  test("socketpair makes unix sockets only", () => {
    expect(ask(nr.socketpair, [1, 1, 0])).toBe(allowed);
    expect(ask(nr.socketpair, [30, 1, 0])).toBe("EAFNOSUPPORT");
  });

  test.each([0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])(
    "no namespace comes by flag %i",
    (flag) => {
      expect(ask(nr.clone, [flag | 17])).toBe("EPERM");
      expect(ask(nr.unshare, [flag])).toBe("EPERM");
    },
  );

  test("threads, forks and a time namespace", () => {
    expect(ask(nr.clone, [0x003d0f00])).toBe(allowed);
    expect(ask(nr.clone, [17 | 0x80])).toBe(allowed);
    expect(ask(nr.unshare, [0x400])).toBe(allowed);
    expect(ask(nr.unshare, [0x80])).toBe("EPERM");
    expect(ask(435)).toBe("ENOSYS");
  });

  test("a terminal's input takes nothing from programs", () => {
    expect(ask(nr.ioctl, [0, 0x5412])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, 0x541c])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, 2 ** 32 + 0x5412])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, 0x5413])).toBe(allowed);
  });

  test("personality can be asked, and set for debuggers", () => {
    for (const value of [0, 0x40000, 0xffffffff]) expect(ask(nr.personality, [value])).toBe(allowed);
    expect(ask(nr.personality, [0x400000])).toBe("EPERM");
  });

  test("the core limit can be asked for, and is not changed", () => {
    expect(ask(nr.setrlimit, [4, 1])).toBe("0");
    expect(ask(nr.setrlimit, [7, 1])).toBe(allowed);
    expect(ask(nr.prlimit64, [0, 4, 0, 1])).toBe(allowed);
    expect(ask(nr.prlimit64, [0, 4, 1, 0])).toBe("0");
    expect(ask(nr.prlimit64, [0, 4, 2 ** 32, 0])).toBe("0");
    expect(ask(nr.prlimit64, [0, 7, 1, 0])).toBe(allowed);
  });

  test("a process does not move its command line", () => {
    expect(ask(nr.prctl, [35, 14])).toBe("EPERM");
    expect(ask(nr.prctl, [15])).toBe(allowed);
  });

  test("changes of owner are answered with success for root only", () => {
    expect(ask(nr.fchownat)).toBe(allowed);
    expect(ask(nr.fchownat, [], "root")).toBe("0");
    expect(ask(nr.setgroups, [], "root")).toBe("0");
  });

  test("calls newer than the table do not exist", () => {
    expect(ask(466)).toBe(allowed);
    expect(ask(467)).toBe("ENOSYS");
    expect(ask(0x40000000)).toBe("ENOSYS");
  });

  test("another architecture's call kills", () => {
    const other = arch === "x64" ? auditArch.arm64 : auditArch.x64;
    expect(decide(seccompFilter("user", arch), { arch: other, nr: 0 })).toBe("kill");
    expect(decide(seccompFilter("user", arch), { arch: 0x40000003, nr: 0 })).toBe("kill");
  });
});
