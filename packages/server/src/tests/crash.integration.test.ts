import { testLoopCrashes } from "../testing/loop-crashes.ts";

testLoopCrashes(10, "timers");
