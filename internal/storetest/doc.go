// Package storetest has what tests of stores in several packages share.
//
//	children, signals   the test binary starts itself again to do a job (Main, Start), stops
//	                    and continues that process, and looks at what a process has open
//	monotonic           a clock that all processes share
//	states              memories and assemblies that say their state, so that a torn or mixed
//	                    one is known
//	clean               a store in which nothing is wrong and nothing was left behind
//	files               a file that is changed behind a store's back; seeds; texts compared
//
// It imports nothing above package repair, so that the tests inside package varve can use it.
package storetest
