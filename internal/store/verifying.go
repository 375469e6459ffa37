package store

import (
	"context"

	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/view"
)

// Source returns the store as a view.Source, through which verification reads it.
func (st *Store) Source() view.Source {
	token := st.Engine.Token()
	if st.Engine.Env().ReadOnly {
		token = "" // it is not among the processes, and has nothing in tmp/
	}
	return view.Source{
		FS: st.Engine.Env().FS, Dir: st.Engine.Env().Dir, Log: st.Engine.Log(),
		State: st.Engine.State(), Codec: st.Engine.Codec(),
		CatchUp: st.Engine.CatchUp, Token: token, Inline: st.Engine.Env().System.Inline,
		FileLimit: places.StoredMost, Limits: kind.StoredLimits, Location: st.Engine.Env().NaiveTimes,
		Creates: func(letter byte, id string) error {
			k, err := st.Engine.Kinds().Named(letter)
			if err == nil {
				err = st.Committer.MayCreate(context.Background(), k, id)
			}
			return err
		},
		Fits: func(letter byte, id string, doc []byte) error {
			k, err := st.Engine.Kinds().Named(letter)
			if err == nil {
				_, err = k.ParseEdit(doc, id)
			}
			return err
		},
		Ignores: func(letter byte, path string) bool {
			k, err := st.Engine.Kinds().Named(letter)
			return err == nil && st.Adopter.Ignores(k, path)
		},
		Views:   st.Views.Findings,
		Explain: st.Engine.Env().Explain,
		Config: func() error {
			_, _, err := settings.Read(st.Engine.Env().FS, st.Engine.Env().Dir)
			return err
		},
	}
}
