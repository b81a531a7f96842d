import { testDemoCrashes } from "../testing/demo-crashes.ts";

testDemoCrashes(2);
