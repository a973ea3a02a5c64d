"""Django's command line."""

from os import environ
from sys import argv

from django.core.management import execute_from_command_line

environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
execute_from_command_line(argv)
