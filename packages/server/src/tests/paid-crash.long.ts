import { testPaidCrashes } from "../testing/demo-crashes.ts";

testPaidCrashes(["server", "sandbox", "server", "keeper", "server"]);
