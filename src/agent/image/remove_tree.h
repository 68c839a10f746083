/* remove_tree.h - deletes a directory of ours with all that is in it. */
#ifndef AGENT_IMAGE_REMOVE_TREE_H
#define AGENT_IMAGE_REMOVE_TREE_H

/* Follows no link and crosses no mount; nobody else may be at work in there. What cannot be deleted
 * stays, for whoever cleans up next. Nothing there is fine. */
void remove_tree(const char *path);

#endif
