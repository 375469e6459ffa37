package verify

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// purges verifies wal/purges, the list of purged versions whose log segments were released.
func (v *Run) purges() error {
	f := purgefile.New(v.Source.FS, v.Source.Dir)
	c, err := f.Read()
	if err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Join("wal", purgefile.Name), err)
	}
	if err := v.purgedTexts(); err != nil || len(c.Damaged) == 0 {
		return err
	}
	return v.report(repair.Finding{
		Kind: repair.PurgesDamaged, Severity: repair.Healable, Path: "wal/" + purgefile.Name, Offset: -1,
		Err:   unmatched(len(c.Damaged), c.First),
		Stake: "a restore may bring back the versions that these lines record as purged",
		Heals: repair.ByLog, Next: repair.NextRepair,
	})
}

// purgedTexts verifies wal/purged-texts. A repair cannot restore its damaged lines: no other file has them.
func (v *Run) purgedTexts() error {
	_, damaged, first, err := purgefile.NewTextsFile(v.Source.FS, v.Source.Dir).Read()
	switch {
	case vfs.IsPermission(err): // of another user of the store
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", filepath.Join("wal", purgefile.TextsName), err)
	case damaged == 0:
		return nil
	}
	return v.report(repair.Finding{
		Kind: repair.PurgesDamaged, Severity: repair.Healable, Path: "wal/" + purgefile.TextsName, Offset: -1,
		Err:   unmatched(damaged, first),
		Stake: "the purged texts that these lines record are not recognised if they reappear",
		Heals: repair.ByMoving, Next: repair.NextRepair,
	})
}

// purged reports whether a file cannot be adopted because the file's text was purged. cause is the error of
// adopting the file. If the text was purged, purged completes the finding f. The user must decide about the file:
// a repair would keep the text in quarantine.
func purged(f *repair.Finding, cause error) bool {
	if !errors.Is(cause, errs.ErrPurged) {
		return false
	}
	f.Kind, f.Severity, f.Offset, f.Err = repair.PurgedFile, repair.Info, -1, cause
	f.Stake, f.Heals, f.Next = "nothing: the text was removed on purpose", repair.ByHand, ""
	return true
}

func unmatched(lines, first int) error {
	return fmt.Errorf("%s damaged, the first is line %d", human.Count(lines, "line is", "lines are"), first)
}
