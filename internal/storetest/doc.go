// Package storetest has what tests of stores in several packages share.
//
//	children, signals   the test binary starts itself again to do a job (Main, Start), stops
//	                    and continues that process, and looks at what a process has open
//	monotonic           a clock that all processes share
//	states              memories and assemblies that say their state, so that a torn or mixed
//	                    one is known
//	clean               a store in which nothing is wrong and nothing was left behind
//	vectors             the vectors of a store compared with its documents (CheckVectors)
//	files               a file that is changed behind a store's back; seeds; texts compared
//
// It does not import package varve, so that the tests inside that can use it.
package storetest
