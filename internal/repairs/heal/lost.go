package heal

import (
	"context"
	"slices"

	"github.com/varve-db/varve/internal/repairs/past"
	"github.com/varve-db/varve/repair"
)

// countLost adds the number of lost versions to the description of the action that replaces the log or one of
// its segments.
func (o *Options) countLost(ctx context.Context, p *repair.RepairPlan) error {
	i := slices.IndexFunc(p.Actions, func(a repair.Action) bool {
		return (a.Do == repair.NewLog || a.Do == repair.SetSegment) &&
			slices.ContainsFunc(a.Findings, func(f repair.Finding) bool {
				return f.Kind == repair.SegmentDamaged || f.Kind == repair.SegmentMissing
			})
	})
	if i < 0 {
		return nil
	}
	s, err := o.Open(ctx, true)
	if err != nil {
		return nil // the action keeps its description without numbers
	}
	defer func() { _ = s.Close() }()
	loss, err := past.Lost(ctx, s.Source().Log, s.Source().State)
	says := loss.String()
	if err != nil || says == "" {
		return err
	}
	if was := p.Actions[i].Loses; was != "" {
		says += ", and " + was
	}
	p.Actions[i].Loses = says
	return nil
}
