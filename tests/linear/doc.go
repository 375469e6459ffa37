// Package linear tests that the operations of several processes are linearizable: TestLinearizable
// records calls and answers, and porcupine checks them against the model of a single map. It has only
// tests.
//
// The everyday share takes seconds. With VARVE_LONG=1 it checks hundreds of histories; flags set
// how many, and from which seed.
package linear
