package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/kind"
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
		if err := ad.st.inner.Engine.BeginUse(); err != nil {
			yield(Finding{}, err)
			return
		}
		defer ad.st.inner.Engine.EndUse()
		verify.Findings(ctx, ad.st.source(), o)(yield)
	})
}

// source is the store as internal/repairs/verify sees it.
func (st *Store) source() view.Source {
	token := st.inner.Engine.Token()
	if st.inner.Engine.Env().ReadOnly {
		token = "" // it is not among the processes, and has nothing in tmp/
	}
	return view.Source{
		FS: st.inner.Engine.Env().FS, Dir: st.inner.Engine.Env().Dir, Log: st.inner.Engine.Log(),
		State: st.inner.Engine.State(), Codec: st.inner.Engine.Codec(),
		CatchUp: st.inner.Engine.CatchUp, Token: token, Inline: st.inner.Engine.Env().System.Inline,
		FileLimit: places.StoredMost, Limits: kind.StoredLimits, Location: st.inner.Engine.Env().NaiveTimes,
		Creates: func(letter byte, id string) error {
			k, err := st.inner.Engine.Kinds().Named(letter)
			if err == nil {
				err = st.inner.Committer.MayCreate(context.Background(), k, id)
			}
			return err
		},
		Fits: func(letter byte, id string, doc []byte) error {
			k, err := st.inner.Engine.Kinds().Named(letter)
			if err == nil {
				_, err = k.ParseEdit(doc, id)
			}
			return err
		},
		Views:   st.inner.Views.Findings,
		Explain: st.inner.Engine.Env().Explain,
		Config: func() error {
			_, _, err := settings.Read(st.inner.Engine.Env().FS, st.inner.Engine.Env().Dir)
			return err
		},
	}
}
