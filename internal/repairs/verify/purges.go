package verify

import (
	"fmt"
	"path/filepath"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/repair"
)

// purges reads wal/purges, which has what the log has released.
func (v *Run) purges() error {
	f := purgefile.New(v.Source.FS, v.Source.Dir)
	c, err := f.Read()
	if err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Join("wal", purgefile.Name), err)
	}
	if len(c.Damaged) == 0 {
		return nil
	}
	return v.report(repair.Finding{
		Kind: repair.PurgesDamaged, Severity: repair.Healable, Path: "wal/" + purgefile.Name, Offset: -1,
		Err:   fmt.Errorf("%s not match their checksums, first line %d", human.Count(len(c.Damaged), "line does", "lines do"), c.First),
		Stake: "what these lines name as purged may come back with a restore",
		Heals: repair.ByLog, Next: repair.NextRepair,
	})
}
