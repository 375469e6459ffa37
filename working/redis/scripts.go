package redis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
)

//go:embed lua/*.lua
var sources embed.FS

// scripts has the Lua scripts of the operations.
type scripts struct {
	attach, get, list, put, del, expire, clear, append, clearNotes, checkpoint, checkpoints, load, restore, discard, count,
	drop *script
}

// script has the text of a Lua script, for the command EVAL, and its hash, for EVALSHA.
type script struct{ text, sha string }

func loadScripts() (*scripts, error) {
	var s scripts
	for _, one := range []struct {
		to    **script
		files []string
	}{
		{&s.attach, []string{"attach"}},
		{&s.get, []string{"get"}},
		{&s.list, []string{"list"}},
		{&s.put, []string{"room", "put"}},
		{&s.del, []string{"delete"}},
		{&s.expire, []string{"expire"}},
		{&s.clear, []string{"clear"}},
		{&s.append, []string{"notes", "append"}},
		{&s.clearNotes, []string{"notes", "clearnotes"}},
		{&s.checkpoint, []string{"notes", "marks", "checkpoint"}},
		{&s.checkpoints, []string{"notes", "marks", "checkpoints"}},
		{&s.load, []string{"notes", "marks", "load"}},
		{&s.restore, []string{"notes", "marks", "restore"}},
		{&s.discard, []string{"notes", "marks", "discard"}},
		{&s.count, []string{"count"}},
		{&s.drop, []string{"drop"}},
	} {
		var text []byte
		for _, name := range append([]string{"common"}, one.files...) {
			part, err := sources.ReadFile("lua/" + name + ".lua")
			if err != nil {
				return nil, fmt.Errorf("working/redis: %w", err)
			}
			text = append(text, part...)
		}
		sum := sha1.Sum(text)
		*one.to = &script{text: string(text), sha: hex.EncodeToString(sum[:])}
	}
	return &s, nil
}
