// Package linear is the proof that the operations of several processes are linearizable:
// TestLinearizable records what they did and were told, and porcupine judges it by the model of
// one map. It has tests only.
//
// The everyday share takes seconds. VARVE_LONG=1 has it judge hundreds of histories; its flags
// say how many, and from which seed.
package linear
