package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
)

// What Verify finds; see package repair.
type (
	Finding       = repair.Finding
	FindingKind   = repair.Kind
	Severity      = repair.Severity
	VerifyOptions = repair.VerifyOptions
	VerifySummary = repair.Summary
)

// How grave a Finding is.
const (
	SeverityInfo     = repair.Info     // nothing is wrong with the store
	SeverityHealable = repair.Healable // a second copy exists
	SeverityLost     = repair.Lost     // no other copy is known
)

// Verify reads the whole store, or a sample of it, and yields each finding: path, offset, what is
// at stake and what would repair it. It changes nothing, and other processes may use the store
// meanwhile. An error ends it. The store must not be closed from within the loop.
func (ad Admin) Verify(ctx context.Context, o VerifyOptions) iter.Seq2[Finding, error] {
	return engine.Whole(ctx, func(yield func(Finding, error) bool) {
		if err := ad.st.engine.BeginUse(); err != nil {
			yield(Finding{}, err)
			return
		}
		defer ad.st.engine.EndUse()
		verify.Findings(ctx, ad.st.source(), o)(yield)
	})
}

// source is the store as internal/repairs/verify sees it.
func (st *Store) source() view.Source {
	token := st.engine.Token
	if st.engine.Env.ReadOnly {
		token = "" // it is not among the processes, and has nothing in tmp/
	}
	return view.Source{
		FS: st.engine.Env.FS, Dir: st.engine.Env.Dir, Log: st.engine.Log, State: &st.engine.State, Codec: &st.engine.Codec,
		CatchUp: st.engine.CatchUp, Token: token, Inline: st.engine.Env.System.Inline,
		FileLimit: places.StoredMost, Limits: document.Stored, Location: st.engine.Env.NaiveTimes,
		Fits: func(letter byte, doc []byte) error {
			_, err := st.engine.Kinds.Named(letter).ParseEdit(doc, "")
			return err
		},
		Views:   st.views.Findings,
		Explain: st.engine.Env.Explain,
		Config: func() error {
			_, _, err := settings.Read(st.engine.Env.FS, st.engine.Env.Dir)
			return err
		},
	}
}
