// Package open is for the project's own tests: it opens stores on a simulated machine, which is not
// part of the public API.
//
//	st, err := varve.Open(ctx, dir, open.In(&varve.Options{}, open.Environment{System: vfs.System{FS: fsys}}))
//
// An Environment is in an unexported field of varve.Options. Package varve registers how to reach
// it, and varve.Open, Restore, Migrate, PlanRepair and the other functions that take Options read
// it. The zero Environment is the real machine. Inside gives a test the parts of an open store.
package open
