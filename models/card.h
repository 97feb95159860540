/*
 * card.h - models/cards/NAME.yaml: models that can be named without a file of one's own.
 *
 *	name: mixtral-8x7b
 *	aliases: [mistralai/Mixtral-8x7B-v0.1]
 *	description: Mistral AI, 8 experts of which 2 are used
 *	source: where the numbers are from
 *	config: {model_type: mixtral, hidden_size: 4096, …}     keys of config.json, read as one
 *
 * A name is a file name, so one model costs one small file to find and read; only an unknown name makes
 * every card's aliases be read.
 */
#ifndef MODELS_CARD_H
#define MODELS_CARD_H

#include "models/model.h"

int card_read(const char *path, const char *quant, struct arena *a, struct model **out, struct err *err);
/* Path of the card with this name or alias, case aside; else an error that names the nearest. */
int card_find(const char *name, struct arena *a, const char **path, struct err *err);

/* The same without an error for a name that is unknown: *path is NULL. */
int card_look_up(const char *name, struct arena *a, const char **path, struct err *err);

#endif
