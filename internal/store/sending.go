package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/copy/offsite"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sealed"
	"github.com/varve-db/varve/remote/sender"
)

// Places returns the access to the files that record where this store's copy elsewhere is. These files are in the
// folder of the user's state, not in the store.
func (st *Store) Places() *offsite.Places {
	e := st.Engine.Env()
	return &offsite.Places{FS: e.System.FS, State: e.StateDir, Dir: e.Dir, Store: uuid.UUID(st.Engine.Log().UUID())}
}

// SentSource returns access to the data of the store that package sender sends to a copy elsewhere.
func (st *Store) SentSource(ctx context.Context) (*offsite.Source, error) {
	s, err := st.Copying(ctx)
	if err != nil {
		return nil, err
	}
	return offsite.New(s), nil
}

// Sending returns the options with which package sender sends the log of this store to the copy elsewhere.
func (st *Store) Sending() sender.Options {
	e := st.Engine.Env()
	return sender.Options{Clock: e.Clock, Sleep: e.Sleep, Random: e.Rand(), FileMode: e.FileMode}
}

// OpenCopy returns the remote through which this store's copy at r is written and read. If the copy is sealed, the
// result encrypts and decrypts with the keys of this machine; otherwise it is r. unseal may be nil: then data that
// were sent cannot be read; see offsite.Places.Opened.
func (st *Store) OpenCopy(ctx context.Context, r remote.Remote, unseal sealed.Unseal) (remote.Remote, error) {
	return st.Places().Opened(ctx, r, st.seal, unseal, st.Engine.Env().Rand())
}

// Sealer returns a function that encrypts data for the recipients of a sealed copy. It returns nil if this program
// cannot encrypt.
func (st *Store) Sealer() offsite.Sealer { return st.seal }

// sending returns the Host that sends the log to the copy elsewhere. plain opens the remote at a URL; if the copy is
// sealed, the Host encrypts what it sends.
func (st *Store) sending(plain offsite.Opener) *offsite.Host {
	e := st.Engine.Env()
	open := func(ctx context.Context, url string) (remote.Remote, error) {
		r, err := plain(ctx, url)
		if err != nil {
			return nil, err
		}
		s, err := st.OpenCopy(ctx, r, nil)
		if _, seals := s.(*sealed.Remote); err == nil && seals && st.seal == nil { // another process may be able to
			err = fmt.Errorf("the copy at %s is encrypted, but this program cannot encrypt → set Options.SealRemote: %w",
				r.Place(), sealed.ErrUnable)
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		return s, nil
	}
	return offsite.NewHost(offsite.HostConfig{
		Places: st.Places(), Source: st.SentSource, Open: open, Sender: st.Sending(), Logger: e.Logger,
		Changed: func(err error) { e.Event(env.Event{Kind: env.EventOffsite, Err: err}) },
	})
}
