// Package storm is the proof that processes which are killed, stopped, starved of files or cut
// off from power lose nothing that was acknowledged. It has tests only.
//
//	storm, child, told, edit, figures   TestStorm: eight processes beside a record of what
//	                                    each was told
//	close      closing a store beside everything that goes on in it
//	files      a process that may open only so many files
//	images     the disk at moments of a load, on file systems of loop devices
//
// The everyday share takes seconds. VARVE_LONG=1 has TestStorm run for minutes; its flags say
// how long, and from which seed.
package storm
