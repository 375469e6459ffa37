package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// redaction describes a redaction in the JSON document of purge --version.
type redaction struct {
	ID          string   `json:"id"`
	Version     uint64   `json:"version"`
	Already     bool     `json:"already"`
	Equal       []uint64 `json:"equal"`
	Overwritten bool     `json:"overwritten"`
}

// purgeVersion redacts one version of the memory that arg names. If groups is true, arg names an assembly. If yes is
// false, purgeVersion first asks the user on a terminal to confirm. now means that the content is also removed from
// the copy elsewhere at once.
func purgeVersion(cmd *cobra.Command, a *cli.App, st *varve.Store, groups bool, arg string, version uint64,
	now, yes bool) error {
	ctx := cmd.Context()
	whole, redact := a.WholeMemory, st.Admin().PurgeVersion
	if groups {
		whole, redact = a.WholeAssembly, st.Assemblies().PurgeVersion
	}
	id, err := whole(ctx, st, arg)
	if err != nil {
		return err
	}
	if _, ok := cli.Terminal(a.In); !ok && !yes {
		return cli.Usagef(cmd.CommandPath(),
			"nothing was redacted: a redaction cannot be undone, and without a terminal it needs --yes")
	}
	if !yes {
		err := Confirm(ctx, a, fmt.Sprintf("The content of version %d of %s will be removed. This cannot be undone.", version,
			cli.PrintableID(id)), fmt.Errorf("%w: the redaction was not confirmed", varve.ErrInvalid))
		if err != nil {
			return err
		}
	}
	r, err := redact(ctx, id, version)
	if errors.Is(err, varve.ErrConflict) {
		err = cli.WithFix(err, "to redact the current version, first write another version with memctl put or memctl "+
			"edit; memctl rm deletes the memory")
	}
	if err != nil {
		return err
	}
	d := redaction{r.ID, r.Version, r.Already, append([]uint64{}, r.Equal...), false}
	if len(r.Equal) > 0 {
		a.Note("%s the same text and will be kept: %s",
			cli.Count(len(r.Equal), "other version has", "other versions have"), numbers(r.Equal))
	}
	s := st.Admin().Stats()
	others := len(s.Processes)+len(s.Elsewhere) > 1
	if !now && others && s.ToOverwrite > 0 {
		a.Document.Member("redacted", d)
		a.Say("redacted: version %d of %s; another process overwrites its bytes within about a minute, "+
			"--now overwrites them at once",
			version, cli.PrintableID(id))
		return nil
	}
	if err := overwrite(ctx, a, st); err != nil {
		a.Document.Member("redacted", d)
		return cli.WithFix(fmt.Errorf("version %d of %s is redacted, but its bytes are not overwritten yet: %w",
			version,
			cli.PrintableID(id), err),
			"run the same command again; a process that has the store open for a minute also overwrites them")
	}
	d.Overwritten = true
	a.Document.Member("redacted", d)
	a.Say("redacted: version %d of %s; its bytes are overwritten", version, cli.PrintableID(id))
	return nil
}

// overwrite overwrites the bytes of all redacted versions, and prints which data could not be overwritten.
func overwrite(ctx context.Context, a *cli.App, st *varve.Store) error {
	r, err := st.Admin().OverwriteRedacted(ctx)
	if r == nil {
		return err
	}
	for _, lost := range r.Lost {
		a.Note("damaged data was overwritten, because it could not be read: %v", lost)
	}
	for _, name := range r.Unlinked {
		a.Note("the old file %s was removed, but not overwritten: another process has the file mapped, or the system "+
			"cannot tell",
			name)
	}
	for _, name := range r.Backup {
		a.Note("%s contains old states of the store, and the version was not redacted in it", name)
	}
	if r.Device != "" {
		a.Note("%s", r.Device)
	}
	return err
}

func numbers(list []uint64) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.FormatUint(n, 10)
	}
	return strings.Join(texts, ", ")
}
