// Package storm tests that no acknowledged operation is lost when processes are killed, stopped,
// run out of file descriptors or lose power. It has only tests.
//
//	storm, child, edit, figures   TestStorm: eight processes, and a record of the answers
//	           that each got (internal/acklog)
//	close      closing a store while operations run
//	files      a process with a small limit of open files
//	images     the disk at moments during a load, on file systems of loop devices
//
// The everyday share takes seconds. With VARVE_LONG=1 TestStorm runs for minutes; flags set how
// long, and from which seed.
package storm
