package remotecmd

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/seal"
	"github.com/varve-db/varve/internal/timearg"
	"github.com/varve-db/varve/remote"
)

// cloned is the JSON document of clone.
type cloned struct {
	Path     string     `json:"path"`
	Store    string     `json:"store"`   // UUID of the store that was cloned
	Version  uint64     `json:"version"` // position at which its log ends
	Time     *time.Time `json:"time"`    // of the last commit, null: unknown
	Fork     bool       `json:"fork"`
	Memories int64      `json:"memories"`
	Damage   []string   `json:"damage,omitempty"` // damage of the copy that was not needed
}

// Clone returns memctl clone.
func Clone(a *cli.App) *cobra.Command {
	var at, identity string
	var o varve.CloneOptions
	c := &cobra.Command{
		Use:   "clone URL DIR",
		Short: "Create a store from a remote copy, as of any moment",
		Long: `Create a store in a new folder from the copy that memctl remote has sent, with the documents, the
versions and the history that the store had. The clone is the same store, and is read-only until memctl
remote take makes it the store that writes. --fork creates an independent store instead, with a UUID
and versions of its own, which can be written at once; so does --at, which restores any moment since
the first snapshot. Everything is verified before the folder opens as a store. Existing files are never
overwritten.

A sealed copy needs the identity of a recipient, and the key of the machine that made the copy, which
memctl remote add has printed: the keeper of the place could have put another store there. --known
names a position that the copy had, as memctl remote status shows it: an older copy is refused.`,
		Example: "  memctl clone file:///mnt/disk/notes laptop\n  memctl clone file:///mnt/disk/notes before --at " +
			"2026-01-31T09:59:00Z\n  memctl clone file:///mnt/disk/notes laptop --identity first.txt --signer ed25519-…",
		Args: cli.Exactly(2, "the URL of a copy and the folder of the new store"),
		RunE: a.DoWhole(func(cmd *cobra.Command, args []string) error {
			_, err := a.Outside(args[1], "a store")
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("at") {
				t, err := timearg.Parse(at, a.Clock().Local())
				if err != nil {
					return cli.Usagef(cmd.CommandPath(), "--at %w", err)
				}
				o.At = t.From
			}
			if o.Unseal, err = seal.Identities(identity); err != nil {
				return err
			}
			if identity == "" && len(o.Signers) > 0 {
				return cli.Usagef(cmd.CommandPath(), "--signer is for a sealed (encrypted) copy, and needs "+
					"--identity FILE")
			}
			ctx := cmd.Context()
			return opened(ctx, args[0], func(r remote.Remote) error {
				o.URL, o.Options = args[0], &varve.Options{LockWait: a.Wait, Clock: a.Clock, SealRemote: seal.Recipients}
				var done func()
				o.Progress, done = a.Bar("cloning")
				report, err := varve.Clone(ctx, r, args[1], &o)
				done()
				if errors.Is(err, varve.ErrSealed) {
					err = cli.WithFix(err, "add --identity FILE, and --signer KEY with the key that memctl remote "+
						"add has printed")
				}
				if errors.Is(err, varve.ErrNotFound) {
					err = cli.WithFix(err, "memctl remote snapshots, in the store, lists the snapshots; without --at, the newest "+
						"moment is cloned")
				}
				if err != nil {
					return err
				}
				out := cloned{args[1], report.Store, report.Position, cli.OrNil(report.Time), report.Fork, report.Memories, nil}
				for _, d := range report.Damage {
					out.Damage = append(out.Damage, d.Error())
					a.Warn("the copy is damaged, but this clone does not need the damaged part: %v", d)
				}
				a.Document.Member("cloned", out)
				when := ""
				if !report.Time.IsZero() {
					when = ", as of " + report.Time.UTC().Format(time.RFC3339Nano)
				}
				a.Say("%s is a store: %s%s", args[1], cli.Count(int(report.Memories), "memory", "memories"), when)
				if !report.Fork {
					a.Say("the clone is read-only; to make it the store that sends to the copy, in place of the "+
						"original: memctl --store %s remote take",
						cli.ShellQuote(args[1]))
				}
				return nil
			})
		}),
	}
	c.Flags().StringVar(&at, "at", "",
		"restore this `moment`: a time (2026-01-31T15:04:05Z, 2026-01-31, yesterday 17:00, 90m, 7d ago)")
	c.Flags().BoolVar(&o.Fork, "fork", false, "make an independent store, with a UUID and versions of its own")
	c.Flags().StringVar(&identity, "identity", "", "a `file` with the age identity that decrypts a sealed copy")
	c.Flags().StringArrayVar(&o.Signers, "signer", nil,
		"the public `key` (ed25519-…) of a machine that made the sealed copy; repeat it for several")
	c.Flags().StringVar(&o.Known, "known", "", "refuse a copy that ends before this `position`, EPOCH:POSITION, "+
		"which the copy had reached")
	return c
}
