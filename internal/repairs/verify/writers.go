package verify

import (
	"fmt"

	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/writerfile"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// writers verifies wal/writers. This file keeps the descriptions of writers after the log has released the segments
// that contain these descriptions. If the power fails while a process appends lines, lines may be damaged. If log and
// archive still have a description for each damaged line, the next flush writes the lines again: nothing is lost, and
// the finding has severity Info.
func (v *Run) writers() error {
	log := v.Source.Log
	if log.Features()&wal.FeatureWriters == 0 {
		return nil
	}
	f := writerfile.New(v.Source.FS, v.Source.Dir, log.UUID())
	damaged, first, err := f.Damaged()
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.Path(), err)
	}
	if damaged == 0 {
		return nil
	}
	t, _, _, err := f.Read()
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.Path(), err)
	}
	known := len(t.All())
	if err := state.PastWriters(v.ctx, log.Past(), log.Durable(), t.Add); err != nil {
		return err
	}
	out := repair.Finding{
		Kind: repair.WritersDamaged, Severity: repair.Healable, Path: "wal/" + writerfile.Name, Offset: -1,
		Err:   unmatched(damaged, first),
		Stake: "the names of the writers that these lines describe: history shows numbers instead",
		Heals: repair.ByLog, Next: repair.NextRepair,
	}
	if len(t.All())-known >= damaged {
		out.Severity, out.Stake = repair.Info, "nothing: the log has the writers, and the next flush writes the lines again"
	}
	return v.report(out)
}
