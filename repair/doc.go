// Package repair has the types of results when a store is verified, repaired, backed up or moved:
// findings, plans, reports, and the description of a backup. No function here opens a store; the
// functions of package varve do, and return these types.
//
// # Findings and plans
//
// A Finding is one deviation from a sound store: its Kind, its meaning for the data (Severity), its
// place, what may be lost, what repairs it, and the next command.
//
// A RepairPlan has Actions, each with the findings that it repairs; one action may repair several
// findings. action.go maps findings to actions. A plan is made of findings alone and refers to no
// store; Apply calls the function that was given to NewPlan.
//
//	Verify  ─→ findings ─→ RepairPlan ─→ Apply ─→ RepairReport
//
// Verify changes nothing; see internal/repairs/verify, and internal/repairs/diagnose for stores that cannot be
// opened. internal/repairs/heal applies plans. internal/copy/backup makes and restores backups, internal/copy/migrate
// moves stores.
package repair
