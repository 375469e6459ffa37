package main

import (
	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/complete"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/memstore"
)

// files is nil: with a nil completion, the shell completes an argument, or the value of a flag, with names of files.
var files cobra.CompletionFunc

// completions returns the functions that complete the arguments of each command. A command that is not listed takes no
// arguments, or text that only the user knows: then the shell gets no proposals.
func completions(a *cli.App) map[string]cobra.CompletionFunc {
	memories, assemblies, sessions := complete.Memories(a), complete.Assemblies(a), complete.Sessions(a)
	either := func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch {
		case set(cmd, "assembly"):
			return assemblies(cmd, args, begun)
		case set(cmd, "working"):
			return complete.Scopes(a)(cmd, args, begun)
		}
		return memories(cmd, args, begun)
	}
	members := func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return assemblies(cmd, args, begun)
		}
		return memories(cmd, args, begun)
	}
	return map[string]cobra.CompletionFunc{
		"get": memories, "edit": firstArgOnly(memories), "rm": memories, "purge": either, "diff": either,
		"history": firstArgOnly(either), "revert": firstArgOnly(either),
		"assembly show": assemblies, "assembly put": memories, "assembly add": members, "assembly remove": members,
		"assembly merge": assemblies, "assembly activate": assemblies, "assembly rm": assemblies,
		"sessions show": sessions, "sessions rm": sessions,
		"quarantine show":    firstArgOnly(complete.Quarantine(a)),
		"quarantine restore": firstArgOnly(complete.Quarantine(a)),
		"quarantine drop":    complete.Quarantine(a),
		"config get":         firstArgOnly(complete.Words(settingNames()...)),
		"config set":         settingAndValue,
		"config unset":       complete.Words(settingNames()...),
		"init":               firstArgOnly(complete.Folders),
		"demo":               firstArgOnly(complete.Folders),
		"backup":             firstArgOnly(files),
		"manual":             firstArgOnly(complete.Folders),
		"restore":            files,
		"clone":              complete.Folders,
		"import":             files,
		"note import":        firstArgOnly(complete.Folders),
		"note export":        firstArgOnly(complete.Folders),
		"note adopt":         firstArgOnly(complete.Folders),
		"note release":       firstArgOnly(complete.Folders),
	}
}

// flagValues returns the functions that complete the values of flags, by the name of the flag; "COMMAND --FLAG" has
// precedence over "--FLAG". A flag that is not listed takes a number, or text that only the user knows.
func flagValues(a *cli.App) map[string]cobra.CompletionFunc {
	memories, assemblies := complete.Memories(a), complete.Assemblies(a)
	var formats []string
	for _, f := range importer.Formats() {
		formats = append(formats, string(f))
	}
	return map[string]cobra.CompletionFunc{
		"--session": complete.Sessions(a), "--scope": complete.Scopes(a),
		"--file": files, "--json-input": files, "--embedding": files, "--vector": files,
		"--like": memories, "--containing": memories,
		"list --after": memories, "log --id": memories, "put --id": memories,
		"assembly list --after": assemblies, "assembly put --id": assemblies,
		"list --sort":   complete.Words(memstore.OrderNames()...),
		"search --kind": complete.Words("memory", "note"),
		"search --mode": complete.Words(byBoth, byMeaning, byWords),
		"watch --kind":  complete.Words("memory", "assembly"),
		"watch --since": complete.Words("now", "0", "1h", "24h"),
		"import --from": complete.Words(formats...),
		"import --zone": complete.Words("UTC", "Local"),
		"export --to":   complete.Words(string(importer.JSONL), string(importer.ServerMemory)),
		"--tools":       complete.Words(append(mcpserver.Groups(), mcpserver.AllGroups)...),
		"--identity":    files, "--tokens": files, "--tls-cert": files, "--tls-key": files,
		"migrate --to": complete.Folders, "restore --log": complete.Folders,
	}
}
