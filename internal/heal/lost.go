package heal

import (
	"context"
	"slices"

	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/verify"
	"github.com/varve-db/varve/internal/versions"
	"github.com/varve-db/varve/repair"
)

// countLost adds to what renews the log, or a segment of it, the versions that are lost with it.
func (o *Options) countLost(ctx context.Context, p *repair.RepairPlan) error {
	i := slices.IndexFunc(p.Actions, func(a repair.Action) bool {
		return (a.Do == repair.NewLog || a.Do == repair.SetSegment) && slices.ContainsFunc(a.Findings, func(f repair.Finding) bool {
			return f.Kind == repair.SegmentDamaged || f.Kind == repair.SegmentMissing
		})
	})
	if i < 0 {
		return nil
	}
	s, err := o.Open(ctx, true)
	if err != nil {
		return nil // what is said without it stays
	}
	defer func() { _ = s.Close() }()
	loss, err := versions.Lost(ctx, s.Source().Log, s.Source().State)
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

// tellDeleted reads log and archive if a file has no entry: that its document was deleted is told there.
func (o *Options) tellDeleted(ctx context.Context, p *repair.RepairPlan) error {
	if !slices.ContainsFunc(p.Actions, func(a repair.Action) bool { return a.Findings[0].Kind.General() == repair.Stranger }) {
		return nil
	}
	s, err := o.Open(ctx, true)
	if err != nil {
		return nil // what is said without it stays
	}
	defer func() { _ = s.Close() }()
	h := &healer{r: &repairer{ctx: ctx, Changer: o.changer(p.Dir), o: *o}, s: s, v: verify.New(ctx, s.Source(), repair.VerifyOptions{Workers: 1}, nil)}
	return versions.TellDeleted(p, func(k *document.Kind, found *repair.Finding) (bool, error) {
		if h.names[k.At] == nil {
			if err := h.recall(k); err != nil {
				return false, err
			}
		}
		f := h.v.Read(k, found.Path[len(k.Folder)+1:])
		return f.Err == nil && h.stale(k, &f, found.ID), nil
	})
}
