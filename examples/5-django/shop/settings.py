"""Settings, as containers are given them."""

from os import environ

SECRET_KEY = environ["SECRET_KEY"]
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["shop"]
DATABASE = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres"}
DATABASE |= {"HOST": environ["POSTGRES_HOST"], "PASSWORD": environ["POSTGRES_PASSWORD"]}
DATABASES = {"default": DATABASE | {"PORT": environ.get("POSTGRES_PORT", "5432")}}
