// Package evil has text that a terminal would obey, and tells what of an output a terminal
// would obey. Tests of memctl use it; nothing else does.
package evil
