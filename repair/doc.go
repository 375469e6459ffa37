// Package repair has what is said of a store that is verified, repaired, backed up or moved:
// findings, plans, reports, and what a backup says of itself. Nothing here opens a store:
// that do the functions of package varve, which return these types.
//
// # Findings and plans
//
// A Finding is one thing that is not as it should be: its Kind, what it means for the data
// (Severity), where it is, what is at stake, what would heal it, and the next command.
//
// A RepairPlan has an Action for each thing that is to be done, with the findings that it
// heals; several findings may need one action. What each finding needs is in action.go. A plan
// knows no store: it is made of findings, and Apply hands it to what made it.
//
//	Verify  ─→ findings ─→ RepairPlan ─→ Apply ─→ RepairReport, with the id for Undo
//
// Verify reads and changes nothing; see internal/verify, and internal/ground for stores that
// cannot be opened. What heals is internal/heal, the manifest by which a repair is undone
// internal/journal. Backups are made and restored by internal/copy, stores moved by
// internal/migrate.
package repair
