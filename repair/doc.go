// Package repair has what is said of a store that is verified, repaired, backed up or moved:
// findings, plans, reports, and what a backup says of itself. No function here opens a store;
// those of package varve do, and return these types.
//
// # Findings and plans
//
// A Finding is one thing that is not as it should be: its Kind, what it means for the data
// (Severity), where it is, what is at stake, what would heal it, and the next command.
//
// A RepairPlan has an Action for each thing that is to be done, with the findings that it
// heals; one action may heal several findings. action.go says what each finding needs. A plan
// is made of findings alone and has no store; Apply gives it to the function of NewPlan.
//
//	Verify  ─→ findings ─→ RepairPlan ─→ Apply ─→ RepairReport, with the id for Undo
//
// Verify changes nothing; see internal/verify, and internal/ground for stores that cannot be
// opened. internal/heal applies plans, internal/journal writes the manifest by which a repair is
// undone. internal/copy makes and restores backups, internal/migrate moves stores.
package repair
