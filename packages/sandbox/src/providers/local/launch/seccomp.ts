import {
  allow,
  assemble,
  dataArch,
  dataNumber,
  encode,
  equal,
  errno,
  type Instruction,
  killProcess,
  type Line,
  label,
  load,
  returns,
  whenEqual,
  whenGreater,
} from "./bpf.ts";
import { inspected, ownershipOfTwo } from "./seccomp-rules.ts";

/**
 * The system call filter of local sandboxes, as classic BPF. Refuses calls that reach rarely used parts of the kernel,
 * other namespaces or the terminal, and allows the rest. Calls newer than this table get ENOSYS, so that a kernel
 * update opens nothing.
 */
export type Arch = "x64" | "arm64";

/**
 * `root`: root inside, with one uid mapped; changes of owner succeed without effect. `two-users`: root and uid 1000;
 * changes of owner between them are real, others succeed without effect.
 */
export type SeccompProfile = "user" | "root" | "two-users";

/** For root, `secondUser` as in `LaunchSpec`. */
export function seccompProfile(spec: {
  readonly user: "agent" | "root";
  readonly secondUser: boolean;
}): SeccompProfile {
  if (spec.user === "agent") return "user";
  return spec.secondUser ? "two-users" : "root";
}

/** The program for bubblewrap's `--seccomp`. */
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
  const inspect = (rules: Partial<Record<Syscall, readonly Line[]>>) => {
    for (const name in rules) {
      const nr = number(name as Syscall);
      const body = assemble(rules[name as Syscall] ?? []);
      if (nr !== null) program.push(whenEqual(nr, body.length), ...body);
    }
  };

  program.push(whenGreater(newestKnownNumber, 1), returns(errno.ENOSYS));
  answer(refused, errno.EPERM);
  answer(unknown, errno.ENOSYS);
  if (profile === "root") answer(ownership, errno.none);
  if (profile === "two-users") inspect(ownershipOfTwo);
  inspect(inspected);
  program.push(returns(allow));
  return encode(program);
}

/**
 * Calls that the filter treats specially, with their numbers on x64 and arm64 (null: does not exist there). A call that
 * is listed here and in none of `inspected`, `ownership` and `unknown` is refused with EPERM.
 */
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
  fallocate: [285, 47],
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
  ioprio_set: [251, 30],
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
  sched_setaffinity: [203, 122],
  sched_setattr: [314, 274],
  sched_setparam: [142, 118],
  sched_setscheduler: [144, 119],
  set_mempolicy: [238, 237],
  set_mempolicy_home_node: [450, 450],
  setdomainname: [171, 162],
  setgroups: [116, 159],
  sethostname: [170, 161],
  setns: [308, 268],
  setpriority: [141, 140],
  setrlimit: [160, 164],
  setsockopt: [54, 208],
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

/** removexattrat. From 424 on, both architectures have the same numbers. */
const newestKnownNumber = 466;

const ownership = Object.keys(ownershipOfTwo) as (keyof typeof ownershipOfTwo)[];

/** Programs have a fallback when these do not exist, but fail when they are forbidden. */
const unknown = ["clone3", "statmount", "listmount", "lsm_set_self_attr"] as const satisfies readonly Syscall[];

const refused = (Object.keys(syscalls) as Syscall[]).filter(
  (name) => !(name in inspected || ([...ownership, ...unknown] as readonly Syscall[]).includes(name)),
);

const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 } as const satisfies Record<Arch, number>;

/** Kills processes that use another architecture's calls. x32 calls set a bit above every number. */
function guardArch(arch: Arch): Instruction[] {
  return assemble([
    load(dataArch),
    equal(auditArch[arch], "known"),
    returns(killProcess),
    label("known"),
    load(dataNumber),
  ]);
}
