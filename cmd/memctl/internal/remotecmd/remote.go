package remotecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/place"
	"github.com/varve-db/varve/cmd/memctl/internal/seal"
	"github.com/varve-db/varve/remote"
)

// Command returns memctl remote.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "remote",
		Short: "Keep a remote copy of the store, a few seconds old",
		Long: `Keep a copy of the store in a folder of another disk, in a bucket or in a PostgreSQL database, which
is never older than seconds, and from which memctl clone restores every moment.

A URL is file:///PATH, s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION, or
postgres://USER@HOST:PORT/DATABASE?schema=NAME. Credentials of a bucket come from AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, VARVE_S3_ACCESS_KEY_ID and VARVE_S3_SECRET_ACCESS_KEY, or ~/.aws/credentials, the
password of a database from PGPASSWORD, PGPASSFILE or ~/.pgpass; they are stored nowhere. The URL is
remembered in the folder of this user's state, for this folder of the store: a copied or cloned store
sends nothing.

memctl mcp, serve, watch and remote follow send what is committed, each second; one of them does, and
writers never wait for it.`,
		Example: `  memctl remote add file:///mnt/disk/notes
  memctl remote status
  memctl remote verify --read-data
  memctl clone file:///mnt/disk/notes restored --fork`,
	}, add(a), status(a), verify(a), snapshots(a), take(a), remove(a), follow(a))
}

// bound opens the store and calls f with the store and the place of its remote copy. If the store has no copy, the
// error names the remedy.
func bound(ctx context.Context, a *cli.App, how cli.Access, f func(st *varve.Store, p varve.Place) error) error {
	return a.With(ctx, how, func(st *varve.Store) error {
		p, err := placeOf(ctx, st)
		if err != nil {
			return err
		}
		return f(st, p)
	})
}

func placeOf(ctx context.Context, st *varve.Store) (varve.Place, error) {
	p, err := st.Admin().Offsite().Place(ctx)
	if errors.Is(err, varve.ErrNotFound) {
		err = cli.WithFix(fmt.Errorf("this machine knows no remote copy of the store: %w", varve.ErrNotFound),
			"add a copy with memctl remote add URL; if this store is a clone, run memctl remote take URL")
	}
	return p, err
}

// opened calls f with the remote at a URL.
func opened(ctx context.Context, url string, f func(r remote.Remote) error) error {
	r, err := place.Open(ctx, url)
	if errors.Is(err, remote.ErrNoRemote) {
		err = cli.WithFix(fmt.Errorf("%w: %w", varve.ErrNotFound, err), "give the URL that was given to memctl "+
			"remote add")
	}
	if err != nil {
		return err
	}
	return errors.Join(f(r), r.Close())
}

// reading returns the function of a command that only reads the remote copy of the store. If identity is the path of a
// file, the copy is decrypted with the identity in that file.
func reading(a *cli.App, identity *string, f func(ctx context.Context, r remote.Remote) error) func(*cobra.Command,
	[]string) error {
	return a.DoWhole(func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		unseal, err := seal.Identities(*identity)
		if err != nil {
			return err
		}
		return bound(ctx, a, cli.Read, func(st *varve.Store, p varve.Place) error {
			return opened(ctx, p.URL, func(r remote.Remote) error {
				r, err := st.Admin().Offsite().Open(ctx, r, unseal)
				if err != nil {
					return err
				}
				return f(ctx, r)
			})
		})
	})
}

// head describes the newest entry of the store's remote copy, in the JSON output.
type head struct {
	URL    string     `json:"url"`
	Store  string     `json:"store"`
	Sent   uint64     `json:"sent"`         // position up to which the copy has the log
	Behind uint64     `json:"behind_bytes"` // bytes of log that the copy lacks
	Time   *time.Time `json:"time"`         // time at which the newest entry was sent; null: nothing was sent
	Epoch  uint64     `json:"epoch"`
	// of a sealed copy: the public keys of its recipients, and of the key with which this machine signs
	Recipients []string `json:"recipients,omitempty"`
	Pending    bool     `json:"recipients_pending,omitempty"` // nothing was sent to these recipients yet
	Signer     string   `json:"signer,omitempty"`
}

func headOf(url string, p *remote.Position, behind uint64) head {
	h := head{URL: url, Sent: p.At.LSN, Behind: behind, Epoch: p.Epoch}
	if p.Number > 0 {
		at := p.Time.UTC()
		h.Store, h.Time = uuid.UUID(p.Geometry.UUID).String(), &at
	}
	return h
}

// printCopyState prints the state of the store's remote copy.
func printCopyState(ctx context.Context, a *cli.App, st *varve.Store, r remote.Remote, url string) error {
	p, behind, err := st.Admin().Offsite().Behind(ctx, r)
	if err != nil {
		return err
	}
	h := headOf(url, &p, behind)
	keys, err := st.Admin().Offsite().Keys()
	if err != nil && !errors.Is(err, varve.ErrNotFound) {
		return err
	}
	h.Recipients, h.Pending, h.Signer = keys.Recipients, keys.Pending, keys.Signer
	a.Document.Member("remote", h)
	a.Say("%s has the log up to position %d (epoch %d), %s behind", url, p.At.LSN, p.Epoch, cli.Size(int64(behind)))
	if keys.Pending {
		a.Say("the copy is still sealed for the earlier recipients: the new list of %s applies from the next "+
			"snapshot on",
			cli.Count(len(keys.Recipients), "recipient", "recipients"))
	} else if keys.Signer != "" {
		a.Say("sealed for %s, signed by %s", cli.Count(len(keys.Recipients), "recipient", "recipients"), keys.Signer)
	}
	if keys.Signer != "" {
		a.Note("memctl clone needs these flags; keep them in another place than the copy: --signer %s --known %d:%d",
			keys.Signer, p.Epoch,
			p.At.LSN)
	}
	return nil
}

func add(a *cli.App) *cobra.Command {
	var recipients []string
	single := false
	c := &cobra.Command{
		Use:   "add URL",
		Short: "Begin a copy in an empty place",
		Long: `Begin a copy of the store in an empty place: test the place, send the log and the first snapshot,
and remember the URL. A folder must be on a file system where two writers cannot both win, a bucket in
an object store with conditional writes; others are refused. A schema of a database is created if it
is missing. What is sent is not encrypted: all who can read the place can read the memories.

--recipient seals the copy with age, names and metadata included: only the identity of a recipient
opens it, and this machine needs none. It signs what it sends, with a key whose public part is
printed: note that, clone asks for it. Give two recipients, or --single-recipient: once all
identities are lost, the copy is. For a sealed copy that exists, other recipients begin with a new
snapshot; the recipients before them can still read what was sent before.`,
		Example: "  memctl remote add file:///mnt/disk/notes --recipient age1… --recipient age1…\n" +
			"  memctl remote add 's3://bucket/notes?endpoint=minio.lan:9000&region=us-east-1'",
		Args: cli.Exactly(1, "the URL of the copy"),
		RunE: a.DoWhole(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			err := seal.Enough(recipients, single, "copy")
			if err == nil && len(recipients) > 0 {
				_, err = seal.Recipients(recipients)
			}
			if err != nil {
				return cli.Usagef(cmd.CommandPath(), "%w", err)
			}
			return a.With(ctx, cli.Write, func(st *varve.Store) error {
				r, err := place.Create(ctx, args[0])
				if err != nil {
					return err
				}
				if len(recipients) > 0 {
					_, err = st.Admin().Offsite().AddSealed(ctx, r, args[0], recipients)
				} else {
					err = st.Admin().Offsite().Add(ctx, r, args[0])
				}
				if err == nil {
					err = printCopyState(ctx, a, st, r, args[0])
				}
				if err == nil && !a.Quiet {
					a.Note("from now on a running memctl mcp, serve, watch or remote follow sends what is committed")
				}
				return errors.Join(err, r.Close())
			})
		}),
	}
	c.Flags().StringArrayVar(&recipients, "recipient", nil,
		"seal the copy for this public `key` of age (age1…); repeat it for several")
	c.Flags().BoolVar(&single, "single-recipient", false, "one recipient is enough: its identity is kept in two places")
	return c
}

func status(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how much of the log the copy has",
		Long: "Read the state of the copy from its place. Show how much of the log the copy lacks, and whether a " +
			"process sends.",
		Example: "  memctl remote status",
		Args:    cli.NoArguments,
		RunE: a.DoWhole(func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return bound(ctx, a, cli.Read, func(st *varve.Store, p varve.Place) error {
				h := st.Health(ctx).Copy
				if !h.Sending && !p.Clone {
					a.Note("no process sends to the copy: start memctl mcp, serve, watch or remote follow")
				}
				if h.LastErr != "" {
					a.Note("the last attempt to send failed: %s", cli.Printable(h.LastErr))
				}
				if p.Clone {
					a.Note("this store is a clone and sends nothing: memctl remote take makes it the store that " +
						"writes and sends")
				}
				return opened(ctx, p.URL, func(r remote.Remote) error { return printCopyState(ctx, a, st, r, p.URL) })
			})
		}),
	}
}

// verified is the JSON document of verify.
type verified struct {
	Epochs     int      `json:"epochs"`
	Pieces     int      `json:"pieces"`
	Bytes      int64    `json:"bytes"`
	Snapshots  int      `json:"snapshots"`
	Complete   bool     `json:"complete"`   // sound pieces complete a snapshot up to the newest moment
	Restorable *bool    `json:"restorable"` // the bytes of such a snapshot are sound; null: they were not read
	Damage     []string `json:"damage"`
}

func verify(a *cli.App) *cobra.Command {
	data, identity := false, ""
	c := &cobra.Command{
		Use:   "verify",
		Short: "Read the copy and verify it",
		Long: `Read all pieces of the copy and verify every entry of the log and the chain over all of them; with
--read-data, the bytes of the snapshots, too. A moment is restored from a snapshot and the pieces after
it. So without --read-data the command tells only whether sound pieces complete a snapshot up to the
newest moment; with it, whether that moment can be restored.

In a sealed copy, the signatures, the sealed bytes and the chain are verified; with --identity, also
their decrypted content.`,
		Example: "  memctl remote verify --read-data",
		Args:    cli.NoArguments,
		RunE: reading(a, &identity, func(ctx context.Context, r remote.Remote) error {
			return verifyRemote(ctx, a, r, data)
		}),
	}
	c.Flags().BoolVar(&data, "read-data", false, "also read the bytes of all snapshots")
	c.Flags().StringVar(&identity, "identity", "", "a `file` with the age identity that decrypts a sealed copy")
	return c
}

func verifyRemote(ctx context.Context, a *cli.App, r remote.Remote, data bool) error {
	v, err := remote.Verify(ctx, r, data)
	if err != nil {
		return err
	}
	out := verified{v.Epochs, v.Pieces, v.Bytes, len(v.Snapshots), v.Complete, nil, []string{}}
	if data {
		out.Restorable = &v.Restorable
	}
	for _, d := range v.Damage {
		out.Damage = append(out.Damage, d.Error())
	}
	a.Document.Member("verified", out)
	for _, d := range v.Damage {
		a.Fail(d)
	}
	a.Say("%s, %s, %s of log", cli.Count(v.Pieces, "piece", "pieces"), cli.Count(len(v.Snapshots), "snapshot",
		"snapshots"), cli.Size(v.Bytes))
	switch {
	case v.Restorable:
		a.Say("the newest moment can be restored")
	case v.Complete:
		a.Say("the pieces are complete from a snapshot up to the newest moment; the bytes of the snapshots were not " +
			"read")
		a.Note("memctl remote verify --read-data also reads the snapshots")
	default:
		return cli.WithFix(fmt.Errorf("%s: the newest moment cannot be restored: %w", r.Place(), varve.ErrCorrupt),
			"memctl remote snapshots lists the moments that can be restored; to make a new copy, run memctl remote "+
				"remove, then memctl remote add with an empty place")
	}
	return nil
}

// listed is a snapshot in the JSON document.
type listed struct {
	ID    string    `json:"id"`
	Epoch uint64    `json:"epoch"`
	From  uint64    `json:"from"` // no moment before this position can be restored from it
	Time  time.Time `json:"time"`
	Size  int64     `json:"bytes"`
}

func snapshots(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "snapshots",
		Short:   "List the snapshots of the copy",
		Long:    "List the snapshots of the copy, the oldest first. Every moment from the first one on can be cloned.",
		Example: "  memctl remote snapshots",
		Args:    cli.NoArguments,
		RunE: reading(a, new(string), func(ctx context.Context, r remote.Remote) error {
			list, err := r.Snapshots(ctx)
			out := []listed{}
			for _, s := range list {
				out = append(out, listed{s.ID.String(), s.Epoch, s.End.LSN, s.Time.UTC(), s.Size})
				a.Say("%s  epoch %d, position %d, %s, %s", s.Time.UTC().Format(time.RFC3339), s.Epoch, s.End.LSN,
					cli.Size(s.Size), s.ID)
			}
			a.Document.Member("snapshots", out)
			return err
		}),
	}
}

func take(a *cli.App) *cobra.Command {
	discard := false
	c := &cobra.Command{
		Use:   "take [URL]",
		Short: "Make this store the one that sends to the copy",
		Long: `Make this store the one that sends to the copy: a clone becomes writable. The machine that sent until
now learns this at its next attempt, and stops sending; its store continues to work without a copy.
Stop the programs on that machine first: what they write after the clone was made is neither in the
copy nor in this store.

If the copy has entries that this store lacks, nothing is changed. With --discard, this store takes the
copy nevertheless, and the copy begins again from the content of this store. Earlier moments of the copy
are kept until they are a week old.`,
		Example: "  memctl --store clone remote take",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.DoWhole(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			dir, err := a.Locate()
			if err != nil {
				return err
			}
			url := ""
			if len(args) > 0 {
				url = args[0]
			} else if err := a.With(ctx, cli.Look, func(st *varve.Store) error {
				p, err := placeOf(ctx, st)
				url = p.URL
				return err
			}); err != nil {
				return err
			}
			return opened(ctx, url, func(r remote.Remote) error {
				o := &varve.Options{LockWait: a.Wait, Clock: a.Clock, Listener: a.Heard, SealRemote: seal.Recipients}
				if err := varve.Take(ctx, dir, r, url, discard, o); err != nil {
					return err
				}
				return a.With(ctx, cli.Look, func(st *varve.Store) error { return printCopyState(ctx, a, st, r, url) })
			})
		}),
	}
	c.Flags().BoolVar(&discard, "discard", false, "take the copy even if it has entries that this store lacks")
	return c
}

func remove(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "remove",
		Short:   "Stop sending, and forget the place",
		Long:    "Stop sending to the copy, and forget its place. The files in the place are not removed.",
		Example: "  memctl remote remove",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				p, perr := placeOf(ctx, st)
				err := st.Admin().Offsite().Remove(ctx)
				if errors.Is(err, varve.ErrNotFound) {
					return perr
				}
				if errors.Is(err, varve.ErrLocked) {
					err = cli.WithFix(err, "end that process, then repeat memctl remote remove")
				}
				if err != nil {
					return err
				}
				at := ""
				if p.URL != "" {
					at = " at " + p.URL
				}
				a.Document.Member("removed", p.URL)
				a.Say("no changes are sent to the copy any more; the files that were sent are kept%s", at)
				return nil
			})
		}),
	}
}

func follow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "follow",
		Short: "Send to the copy until interrupted",
		Long: `Every second, send to the copy what was committed, until interrupted. memctl mcp and memctl serve also
send: memctl remote follow is for a machine on which neither of them runs all the time. A service
manager, such as systemd, can run it.`,
		Example: "  memctl remote follow",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			dir, err := a.Locate()
			if err != nil {
				return err
			}
			more := func(o *varve.Options) {
				o.NoBackground = false
				others := o.Listener
				o.Listener = func(e varve.Event) {
					switch {
					case e.Kind != varve.EventOffsite:
						others(e)
					case e.Err != nil:
						a.Warn("sending to the copy fails: %v", e.Err)
					default:
						a.Note("sending to the copy works again")
					}
				}
			}
			for {
				err := a.WithIn(ctx, dir, cli.Attend, more, func(st *varve.Store) error { return send(ctx, a, st) })
				if !errors.Is(err, varve.ErrReplaced) || ctx.Err() != nil {
					return err
				}
				if dir, err = a.ReopenedAs(err, "sends"); err != nil {
					return err
				}
			}
		}),
	}
}

// inPlaceEvery is the interval at which memctl remote follow checks whether the store's folder was replaced.
const inPlaceEvery = 2 * time.Second

// send blocks until ctx ends or the store's folder is replaced. Meanwhile the background goroutines of the open store
// send its log to the remote copy.
func send(ctx context.Context, a *cli.App, st *varve.Store) error {
	p, err := placeOf(ctx, st)
	if err != nil {
		return err
	}
	if !a.Quiet {
		a.Note("sending to %s; Ctrl-C ends memctl", p.URL)
	}
	tick := time.NewTicker(inPlaceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := st.Admin().InPlace(); errors.Is(err, varve.ErrReplaced) {
				return err
			}
		}
	}
}
