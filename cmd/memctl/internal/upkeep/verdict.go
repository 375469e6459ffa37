package upkeep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/repair"
)

// verdict sums findings up. Of the log it is only said that what is current is in the files: which
// old versions are lost with it, the plan of a repair counts.
type verdict struct {
	lost, healable int
	past           bool     // there is one about the log
	loses          []string // what a plan says of itself
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
		return fmt.Sprintf("%d lost or unreadable, %d repairable", v.lost, v.healable)
	case len(v.loses) > 0:
		return fmt.Sprintf("%d repairable; lost: %s", v.healable, strings.Join(v.loses, "; "))
	case v.past:
		return fmt.Sprintf("%d repairable, nothing that is current is lost", v.healable)
	}
	return fmt.Sprintf("%d repairable, nothing is lost", v.healable)
}

// note tells by the exit code that not all is well. It was told already.
func (v *verdict) note(a *cli.App, fix string) {
	switch {
	case v.lost > 0:
		a.Tell(&cli.Failure{Kind: "lost", Message: v.String(), Fix: fix, Code: cli.CodeLost})
	case v.healable > 0:
		a.Tell(&cli.Failure{Kind: "damage", Message: v.String(), Fix: fix, Code: cli.CodeDamage})
	}
}
