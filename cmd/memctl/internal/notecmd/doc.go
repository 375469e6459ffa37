// Package notecmd has the commands memctl note, which read and write the notes of a store.
package notecmd
