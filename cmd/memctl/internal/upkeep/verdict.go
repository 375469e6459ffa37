package upkeep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/repair"
)

// verdict counts the findings of verify or repair for a summary. A finding about the log may mean that old versions
// are lost. Verify cannot know which ones, so its summary then says only that no current version is lost. The plan of
// a repair lists the lost versions in loses.
type verdict struct {
	lost, healable int
	past           bool     // there is a finding about the log or its archive
	loses          []string // descriptions of the data that would be lost, from the plan of the repair
}

func (v *verdict) add(f *varve.Finding) {
	switch f.Severity {
	case repair.Lost:
		v.lost++
	case repair.Healable:
		v.healable++
		v.past = v.past || slices.Contains([]varve.FindingKind{repair.SegmentDamaged, repair.SegmentMissing,
			repair.EntryInvalid, repair.LogMissing, repair.ArchiveDamaged}, f.Kind.General())
	}
}

func (v *verdict) count() int { return v.lost + v.healable }

func (v *verdict) String() string {
	switch {
	case v.count() == 0:
		return "no damage found"
	case v.lost > 0:
		return fmt.Sprintf("findings: %d lost or unreadable, %d repairable", v.lost, v.healable)
	case len(v.loses) > 0:
		return fmt.Sprintf("findings: %d repairable; lost: %s", v.healable, strings.Join(v.loses, "; "))
	case v.past:
		return fmt.Sprintf("findings: %d repairable, no current version is lost", v.healable)
	}
	return fmt.Sprintf("findings: %d repairable, nothing is lost", v.healable)
}

// note records a failure for the exit code, with fix as its remedy. The findings were printed already.
func (v *verdict) note(a *cli.App, fix string) {
	switch {
	case v.lost > 0:
		a.Tell(&cli.Failure{Kind: "lost", Message: v.String(), Fix: fix, Code: cli.CodeLost})
	case v.healable > 0:
		a.Tell(&cli.Failure{Kind: "damage", Message: v.String(), Fix: fix, Code: cli.CodeDamage})
	}
}
