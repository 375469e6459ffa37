// Package processes is the proof that processes which use the same things of a store at once lose
// nothing of what they were told is done, some of them killed. It has tests only: of working
// memory so far. Those of memories stand beside the store, as they look inside it.
package processes
