"""Pages of one file that need no script: reports that are sent, printed, or shown by a CI server which lets none
run. They look like the viewer, whose style sheets they carry. Every taped text is escaped.
"""
