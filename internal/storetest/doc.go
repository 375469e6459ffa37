// Package storetest has helpers that tests of stores in several packages share.
//
//	environment         a store on a simulated machine (In), and the store behind a handle (Inner)
//	children, signals   the test binary starts itself again to do a job (Main, Start), stops
//	                    and continues that process, and lists the files that a process has open
//	monotonic           a clock that all processes share
//	states              memories and assemblies that contain their state, so that a torn or mixed
//	                    one is recognised
//	clean               checks that a store is sound and has no leftovers
//	vectors             the vectors of a store compared with its documents (CheckVectors)
//	files               changes a file without the store's knowledge; seeds; compares texts
//
// It does not import package varve, so that the tests inside that can use it.
package storetest
