package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/repair"
)

// These types describe what Verify finds; they are declared in package repair.
type (
	Finding       = repair.Finding
	FindingKind   = repair.Kind
	Severity      = repair.Severity
	VerifyOptions = repair.VerifyOptions
	VerifySummary = repair.Summary
)

// The severity of a Finding.
const (
	SeverityInfo     = repair.Info     // nothing is wrong with the store
	SeverityHealable = repair.Healable // a second copy exists
	SeverityLost     = repair.Lost     // no other copy is known
)

// Verify reads the whole store, or a sample of it, and yields each finding: the path, the offset, the data at stake and
// the repair. It changes nothing, and other processes may use the store meanwhile. An error is the last value. The
// store must not be closed from within the loop.
func (ad Admin) Verify(ctx context.Context, o VerifyOptions) iter.Seq2[Finding, error] {
	return engine.Whole(ctx, func(yield func(Finding, error) bool) {
		if err := ad.st.inner.Engine.BeginUse(); err != nil {
			yield(Finding{}, err)
			return
		}
		defer ad.st.inner.Engine.EndUse()
		verify.Findings(ctx, ad.st.inner.Source(), o)(yield)
	})
}
