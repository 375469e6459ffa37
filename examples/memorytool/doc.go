// Command memorytool lets a model keep its memory as notes of a store: it connects package memorytool to the tool
// runner of anthropic-sdk-go.
//
//	ANTHROPIC_API_KEY=… go run . -store storage "Remember that I prefer trains."
//	go run . -demo "Remember that I prefer trains."
//
// With -demo a server in the process takes the place of the API and plays a model. It needs no key and no network.
//
// It is a module of its own, so that the library does not depend on a client of the API.
package main
