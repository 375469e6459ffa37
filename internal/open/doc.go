// Package open is what the project's own tests open stores through: it replaces the machine
// under a store, which is no part of the public API.
//
//	st, err := varve.Open(ctx, dir, open.In(&varve.Options{}, open.Environment{System: vfs.System{FS: fsys}}))
//
// An Environment lies in an unexported field of varve.Options. Package varve registers how to
// reach it, and varve.Open, Restore, Migrate, PlanRepair and the other functions that take
// Options read it. The zero Environment is the machine as it is. Inside gives a test what an open
// store is made of.
package open
