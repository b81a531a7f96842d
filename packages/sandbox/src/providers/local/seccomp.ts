/**
 * The system call filter of local sandboxes, as classic BPF. What a program could use to reach the kernel's less
 * travelled parts, other namespaces or the terminal is refused; the rest is allowed. Numbers that are newer than this
 * table answer ENOSYS, so that a kernel update opens nothing.
 */
export type Arch = "x64" | "arm64";

/** `root` is root inside, with one uid mapped: changes of owner are answered with success and not done. */
export type SeccompProfile = "user" | "root";

/** The program in the bytes that bubblewrap's `--seccomp` takes. */
export function seccompFilter(profile: SeccompProfile, arch: Arch): Uint8Array {
  const numbers = arch === "x64" ? 0 : 1;
  const number = (name: Syscall): number | null => syscalls[name][numbers];
  const program: Instruction[] = [...guardArch(arch)];
  const answer = (names: readonly Syscall[], action: number) => {
    for (const name of names) {
      const nr = number(name);
      if (nr !== null) program.push(whenEqual(nr, 1), returns(action));
    }
  };
  const inspect = (name: Syscall, rules: readonly Line[]) => {
    const nr = number(name);
    const body = assemble(rules);
    if (nr !== null) program.push(whenEqual(nr, body.length), ...body);
  };

  program.push(whenGreater(newestKnownNumber, 1), returns(errno.ENOSYS));
  answer(refused, errno.EPERM);
  answer(unknown, errno.ENOSYS);
  if (profile === "root") answer(ownership, errno.none);
  inspect("socket", socketRules);
  inspect("socketpair", socketpairRules);
  inspect("clone", refuseFlags(newNamespaceFlags));
  inspect("unshare", refuseFlags(newNamespaceFlags | cloneNewTime));
  inspect("ioctl", ioctlRules);
  inspect("personality", personalityRules);
  inspect("prctl", prctlRules);
  inspect("setrlimit", setrlimitRules);
  inspect("prlimit64", prlimitRules);
  program.push(returns(allow));
  return encode(program);
}

/** Name -> its number on x64 and arm64; null where it does not exist. */
const syscalls = {
  acct: [163, 89],
  add_key: [248, 217],
  adjtimex: [159, 171],
  afs_syscall: [183, null],
  bpf: [321, 280],
  chown: [92, null],
  chroot: [161, 51],
  clock_adjtime: [305, 266],
  clock_settime: [227, 112],
  clone: [56, 220],
  clone3: [435, 435],
  create_module: [174, null],
  delete_module: [176, 106],
  fanotify_init: [300, 262],
  fchown: [93, 55],
  fchownat: [260, 54],
  finit_module: [313, 273],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fsopen: [430, 430],
  fspick: [433, 433],
  get_kernel_syms: [177, null],
  init_module: [175, 105],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  io_uring_setup: [425, 425],
  ioctl: [16, 29],
  ioperm: [173, null],
  iopl: [172, null],
  kcmp: [312, 272],
  kexec_file_load: [320, 294],
  kexec_load: [246, 104],
  keyctl: [250, 219],
  lchown: [94, null],
  listmount: [458, 458],
  lookup_dcookie: [212, 18],
  lsm_set_self_attr: [460, 460],
  mbind: [237, 235],
  memfd_secret: [447, 447],
  migrate_pages: [256, 238],
  modify_ldt: [154, null],
  mount: [165, 40],
  mount_setattr: [442, 442],
  move_mount: [429, 429],
  move_pages: [279, 239],
  name_to_handle_at: [303, 264],
  nfsservctl: [180, 42],
  open_by_handle_at: [304, 265],
  open_tree: [428, 428],
  perf_event_open: [298, 241],
  personality: [135, 92],
  pidfd_getfd: [438, 438],
  pivot_root: [155, 41],
  prctl: [157, 167],
  prlimit64: [302, 261],
  process_madvise: [440, 440],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  query_module: [178, null],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  reboot: [169, 142],
  request_key: [249, 218],
  set_mempolicy: [238, 237],
  set_mempolicy_home_node: [450, 450],
  setdomainname: [171, 162],
  setgroups: [116, 159],
  sethostname: [170, 161],
  setns: [308, 268],
  setrlimit: [160, 164],
  settimeofday: [164, 170],
  socket: [41, 198],
  socketpair: [53, 199],
  statmount: [457, 457],
  swapoff: [168, 225],
  swapon: [167, 224],
  sysfs: [139, null],
  syslog: [103, 116],
  umount2: [166, 39],
  unshare: [272, 97],
  uselib: [134, null],
  userfaultfd: [323, 282],
  ustat: [136, null],
  vhangup: [153, 58],
  vserver: [236, null],
} as const satisfies Record<string, readonly [x64: number, arm64: number | null]>;

export type Syscall = keyof typeof syscalls;

/** removexattrat. From 424 on both architectures share their numbers. */
const newestKnownNumber = 466;

const ownership = ["chown", "lchown", "fchown", "fchownat", "setgroups"] as const satisfies readonly Syscall[];

/** Programs fall back when these do not exist, and give up when they are forbidden. */
const unknown = ["clone3", "statmount", "listmount", "lsm_set_self_attr"] as const satisfies readonly Syscall[];

const inspected = [
  "socket",
  "socketpair",
  "clone",
  "unshare",
  "ioctl",
  "personality",
  "prctl",
  "setrlimit",
  "prlimit64",
] as const satisfies readonly Syscall[];

const refused = (Object.keys(syscalls) as Syscall[]).filter(
  (name) => !([...ownership, ...unknown, ...inspected] as readonly Syscall[]).includes(name),
);

interface Instruction {
  readonly code: number;
  readonly whenTrue: number;
  readonly whenFalse: number;
  readonly operand: number;
}

/** A line of a rule: an instruction, a label, or a jump to a label further down; a jump not taken goes on. */
type Line =
  | Instruction
  | { readonly label: string }
  | { readonly jump: number; readonly operand: number; readonly to: string };

const instruction = (code: number, operand: number, whenTrue = 0, whenFalse = 0): Instruction => ({
  code,
  whenTrue,
  whenFalse,
  operand,
});
const load = (offset: number) => instruction(0x20, offset);
const keepBits = (bits: number) => instruction(0x54, bits);
const returns = (action: number) => instruction(0x06, action);
/** Does the next `length` instructions when equal, else skips them. */
const whenEqual = (value: number, length: number) => instruction(0x15, value, 0, length);
const whenGreater = (value: number, length: number) => instruction(0x25, value, 0, length);
const label = (name: string): Line => ({ label: name });
const equal = (value: number, to: string): Line => ({ jump: 0x15, operand: value, to });
const anySet = (bits: number, to: string): Line => ({ jump: 0x45, operand: bits, to });

/** Puts distances in the place of labels. */
function assemble(lines: readonly Line[]): Instruction[] {
  const places = new Map<string, number>();
  const body = lines.filter((line, index) => {
    if (!("label" in line)) return true;
    places.set(line.label, index - places.size);
    return false;
  }) as Exclude<Line, { label: string }>[];
  return body.map((line, index) => {
    if (!("jump" in line)) return line;
    const distance = (places.get(line.to) ?? Number.NaN) - index - 1;
    if (!(distance >= 0 && distance < 256)) throw new RangeError(`no label ${line.to} within reach`);
    return instruction(line.jump, line.operand, distance, 0);
  });
}

const allow = 0x7fff0000;
const killProcess = 0x80000000;
const errnoAction = 0x00050000;
const errno = {
  none: errnoAction,
  EPERM: errnoAction | 1,
  ENOSYS: errnoAction | 38,
  EPROTONOSUPPORT: errnoAction | 93,
  EAFNOSUPPORT: errnoAction | 97,
} as const;

/** Offsets in struct seccomp_data. The kernel takes the arguments inspected here as 32 bits: the upper half says nothing. */
const dataNumber = 0;
const dataArch = 4;
const argument = (index: number): number => 16 + 8 * index;

const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 } as const satisfies Record<Arch, number>;

/** Another architecture's calls have other numbers: the process is killed. x32 calls carry a bit above every number. */
function guardArch(arch: Arch): Instruction[] {
  return assemble([
    load(dataArch),
    equal(auditArch[arch], "known"),
    returns(killProcess),
    label("known"),
    load(dataNumber),
  ]);
}

const newNamespaceFlags = 0x7e020000;
const cloneNewTime = 0x80;

function refuseFlags(flags: number): Line[] {
  return [load(argument(0)), anySet(flags, "refuse"), returns(allow), label("refuse"), returns(errno.EPERM)];
}

const family = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;
const socketType = { stream: 1, datagram: 2, bits: 0xf } as const;
const protocol = { unset: 0, tcp: 6, udp: 17 } as const;

/** Unix sockets; TCP and UDP, but no protocol whose module the kernel would load; routes, which list the interfaces. */
const socketRules: readonly Line[] = [
  load(argument(0)),
  equal(family.unix, "allow"),
  equal(family.inet, "internet"),
  equal(family.inet6, "internet"),
  equal(family.netlink, "netlink"),
  returns(errno.EAFNOSUPPORT),
  label("internet"),
  load(argument(1)),
  keepBits(socketType.bits),
  equal(socketType.stream, "stream"),
  equal(socketType.datagram, "datagram"),
  returns(errno.EPROTONOSUPPORT),
  label("stream"),
  load(argument(2)),
  equal(protocol.unset, "allow"),
  equal(protocol.tcp, "allow"),
  returns(errno.EPROTONOSUPPORT),
  label("datagram"),
  load(argument(2)),
  equal(protocol.unset, "allow"),
  equal(protocol.udp, "allow"),
  returns(errno.EPROTONOSUPPORT),
  label("netlink"),
  load(argument(2)),
  equal(protocol.unset, "allow"),
  returns(errno.EPROTONOSUPPORT),
  label("allow"),
  returns(allow),
];

const socketpairRules: readonly Line[] = [
  load(argument(0)),
  equal(family.unix, "allow"),
  returns(errno.EAFNOSUPPORT),
  label("allow"),
  returns(allow),
];

/** TIOCSTI and TIOCLINUX put characters into a terminal's input. */
const ioctlRules: readonly Line[] = [
  load(argument(1)),
  equal(0x5412, "refuse"),
  equal(0x541c, "refuse"),
  returns(allow),
  label("refuse"),
  returns(errno.EPERM),
];

/** Plain Linux, with random addresses or (for debuggers) without; and the question which it is. */
const personalityRules: readonly Line[] = [
  load(argument(0)),
  equal(0, "allow"),
  equal(0x0040000, "allow"),
  equal(0xffffffff, "allow"),
  returns(errno.EPERM),
  label("allow"),
  returns(allow),
];

/** PR_SET_MM moves what /proc shows as a command line: to whoever lists processes on the host it can be gigabytes. */
const prctlRules: readonly Line[] = [
  load(argument(0)),
  equal(35, "refuse"),
  returns(allow),
  label("refuse"),
  returns(errno.EPERM),
];

/**
 * RLIMIT_CORE stays as the launcher set it: with 0 a crash would run the host's crash handler, as root. Programs that
 * turn their dumps off end when they can not, so the change is answered with success and not done.
 */
const rlimitCore = 4;
const setrlimitRules: readonly Line[] = [
  load(argument(0)),
  equal(rlimitCore, "keep"),
  returns(allow),
  label("keep"),
  returns(errno.none),
];
const prlimitRules: readonly Line[] = [
  load(argument(1)),
  equal(rlimitCore, "core"),
  returns(allow),
  label("core"),
  load(argument(2)),
  equal(0, "upper half"),
  returns(errno.none),
  label("upper half"),
  load(argument(2) + 4),
  equal(0, "question"),
  returns(errno.none),
  label("question"),
  returns(allow),
];

function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  program.forEach(({ code, whenTrue, whenFalse, operand }, index) => {
    bytes.setUint16(index * 8, code, true);
    bytes.setUint8(index * 8 + 2, whenTrue);
    bytes.setUint8(index * 8 + 3, whenFalse);
    bytes.setUint32(index * 8 + 4, operand >>> 0, true);
  });
  return new Uint8Array(bytes.buffer);
}
